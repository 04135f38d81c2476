//! What a pop brings: messages, and the lease they are under.

use std::time::{Duration, SystemTime};

use uuid::Uuid;

use super::ids::{GroupId, LeaseId, MessageId, PartitionId, PartitionUid, QueueId};
use super::name::{GroupName, PartitionName, QueueName};
use super::payload::Payload;

/// One message, as a group sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Message {
    /// Its id.
    pub id: MessageId,
    /// What the producer calls it; its own id when the producer named none.
    pub transaction_id: String,
    /// For following it through other systems.
    pub trace_id: Option<Uuid>,
    /// Who pushed it, as far as the door knew.
    pub producer: Option<String>,
    /// What it carries.
    pub payload: Payload,
    /// When it was pushed, by the database's clock.
    pub created_at: SystemTime,
    /// Its place in its partition, counted from 1.
    pub seq: i64,
}

/// What one pop brought: messages of one or more partitions under one lease.
#[derive(Debug)]
pub struct Batch {
    /// The lease; `None` when the messages are acked by having been popped.
    pub lease: Option<LeaseId>,
    /// Who popped.
    pub group: GroupName,
    /// Partition by partition.
    pub partitions: Vec<PartitionLease>,
}

/// One partition's share of a [`Batch`]: a range of its sequence, ours until the lease ends.
#[derive(Debug)]
#[non_exhaustive]
pub struct PartitionLease {
    /// Its queue.
    pub queue: QueueName,
    /// Its name.
    pub partition: PartitionName,
    /// Its name for the outside world.
    pub partition_uid: PartitionUid,
    /// The messages, in order.
    pub messages: Vec<Message>,
    /// How often the first of them has been claimed, this time included.
    pub deliveries: i32,
    /// How long the lease lasted when it was made.
    pub lease_time: Duration,
    /// The lease of the whole batch; `None` when the messages are acked by having been popped.
    pub(crate) lease: Option<LeaseId>,
    pub(crate) queue_id: QueueId,
    pub(crate) partition_id: PartitionId,
    pub(crate) group_id: GroupId,
    /// The lease covers the sequences after `start` up to `through`; some of them may have been
    /// deleted.
    pub(crate) start: i64,
    pub(crate) through: i64,
}

impl Batch {
    /// Every message, partition by partition.
    pub fn messages(&self) -> impl Iterator<Item = &Message> {
        self.partitions.iter().flat_map(|partition| &partition.messages)
    }

    /// How many messages.
    pub fn len(&self) -> usize {
        self.partitions.iter().map(|partition| partition.messages.len()).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
