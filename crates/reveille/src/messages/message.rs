//! What a pop returns: messages, and the lease they are under.

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
    /// The producer's own id; the message's id if there is none.
    pub transaction_id: String,
    /// For following it through other systems.
    pub trace_id: Option<Uuid>,
    /// The name of its producer, if the push gave one.
    pub producer: Option<String>,
    /// Its bytes.
    pub payload: Payload,
    /// When it was pushed, by the database's clock.
    pub created_at: SystemTime,
    /// Its position in its partition, counted from 1.
    pub seq: i64,
}

/// The messages of one pop: from one or more partitions, under one lease.
#[derive(Debug)]
pub struct Batch {
    /// The lease; `None` if the messages are acked by popping.
    pub lease: Option<LeaseId>,
    /// The consumer group.
    pub group: GroupName,
    /// The messages, partition by partition.
    pub partitions: Vec<PartitionLease>,
}

/// One partition of a [`Batch`]: a range of its sequences, leased to the consumer.
#[derive(Debug)]
#[non_exhaustive]
pub struct PartitionLease {
    /// Its queue.
    pub queue: QueueName,
    /// Its name.
    pub partition: PartitionName,
    /// Its public id.
    pub partition_uid: PartitionUid,
    /// The messages, in order.
    pub messages: Vec<Message>,
    /// How often the first of them was claimed, this time included.
    pub deliveries: i32,
    /// How long the lease lasts, from the claim.
    pub lease_time: Duration,
    /// The lease of the whole batch; `None` if the messages are acked by popping.
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
