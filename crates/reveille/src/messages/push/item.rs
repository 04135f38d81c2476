//! What is pushed, and what became of it.

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

    /// Which ordered lane of the queue. Default: the usual one.
    #[must_use]
    pub fn partition(mut self, partition: PartitionName) -> Self {
        self.partition = partition;
        self
    }

    /// What the producer calls it: within the queue's window a partition takes each id once. At
    /// most 1024 bytes. Default: the message's own id, which is new.
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

    /// Who pushes it, as far as the door knows. At most 1024 bytes. Default: nobody in particular.
    #[must_use]
    pub fn producer(mut self, producer: impl Into<String>) -> Self {
        self.producer = Some(producer.into());
        self
    }
}

/// A message that the database has.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pushed {
    /// Its id; of a duplicate, the id of the message that came first.
    pub id: MessageId,
    /// What the producer called it, if it did: see [`transaction_id`](Self::transaction_id).
    pub named: Option<String>,
    /// Its partition, as the outside world knows it; `None` while pushes are paused, for then it
    /// may not be there yet.
    pub partition_uid: Option<PartitionUid>,
    /// What happened.
    pub outcome: PushOutcome,
}

/// What a push did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PushOutcome {
    /// It is in its partition.
    Stored {
        /// Its place there, counted from 1. Zero if it was stored, and consumed and removed, before
        /// a lost answer could be made good.
        seq: i64,
    },
    /// Its transaction id was seen before; nothing was stored.
    Duplicate {
        /// The message that came first.
        of: MessageId,
    },
    /// Pushes are paused: it is stored, and comes to its partition when they go on.
    Buffered,
}

impl Pushed {
    /// What the producer called it, else its id.
    pub fn transaction_id(&self) -> Cow<'_, str> {
        match &self.named {
            Some(name) => Cow::Borrowed(name),
            None => Cow::Owned(self.id.to_string()),
        }
    }

    /// Whether it was stored before.
    pub fn is_duplicate(&self) -> bool {
        matches!(self.outcome, PushOutcome::Duplicate { .. })
    }
}
