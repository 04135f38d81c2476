//! The item that a caller pushes, and the answer it gets.

use std::borrow::Cow;

use uuid::Uuid;

use crate::messages::ids::{MessageId, PartitionUid};
use crate::messages::name::{PartitionName, QueueName};
use crate::messages::payload::Payload;

/// One message to be pushed.
#[derive(Debug, Clone)]
pub struct PushItem {
    pub(crate) queue: QueueName,
    pub(crate) partition: PartitionName,
    pub(crate) payload: Payload,
    pub(crate) transaction_id: Option<String>,
    pub(crate) trace_id: Option<Uuid>,
    pub(crate) producer: Option<String>,
}

impl PushItem {
    /// A message for the usual partition of a queue.
    pub fn new(queue: QueueName, payload: impl Into<Payload>) -> Self {
        Self {
            queue,
            partition: PartitionName::usual(),
            payload: payload.into(),
            transaction_id: None,
            trace_id: None,
            producer: None,
        }
    }

    /// Which partition of the queue. Default: the usual one.
    #[must_use]
    pub fn partition(mut self, partition: PartitionName) -> Self {
        self.partition = partition;
        self
    }

    /// The producer's own id of the message: a partition stores each id once within the queue's
    /// window. At most 1024 bytes. Default: the message's own id, which is new.
    #[must_use]
    pub fn transaction_id(mut self, id: impl Into<String>) -> Self {
        self.transaction_id = Some(id.into());
        self
    }

    /// For following it through other systems. Default: none.
    #[must_use]
    pub fn trace_id(mut self, id: Uuid) -> Self {
        self.trace_id = Some(id);
        self
    }

    /// The name of the producer. At most 1024 bytes. Default: none.
    #[must_use]
    pub fn producer(mut self, producer: impl Into<String>) -> Self {
        self.producer = Some(producer.into());
        self
    }
}

/// A message that is stored in the database.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pushed {
    /// Its id; of a duplicate, the id of the message that came first.
    pub id: MessageId,
    /// The producer's own id, if there is one: see [`transaction_id`](Self::transaction_id).
    pub named: Option<String>,
    /// The public id of its partition; `None` while pushes are paused, because the partition may
    /// not exist yet.
    pub partition_uid: Option<PartitionUid>,
    /// What the push did.
    pub outcome: PushOutcome,
}

/// What a push did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PushOutcome {
    /// It is in its partition.
    Stored {
        /// Its position there, counted from 1. Zero if the answer of the push was lost, and the
        /// message was consumed and removed before a repeat found it.
        seq: i64,
    },
    /// Its transaction id was seen before; nothing was stored.
    Duplicate {
        /// The message that came first.
        of: MessageId,
    },
    /// Pushes are paused: it is stored, and reaches its partition when the pause ends.
    Buffered,
}

impl Pushed {
    /// The producer's own id, or the message's id if there is none.
    pub fn transaction_id(&self) -> Cow<'_, str> {
        match &self.named {
            Some(name) => Cow::Borrowed(name),
            None => Cow::Owned(self.id.to_string()),
        }
    }

    /// Whether its transaction id was seen before.
    pub fn is_duplicate(&self) -> bool {
        matches!(self.outcome, PushOutcome::Duplicate { .. })
    }
}
