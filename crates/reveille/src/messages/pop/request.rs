//! The pop that a consumer requests, and the demand that waits for it.
//!
//! A [`Pop`] names queues and a group, as its caller knows them. A [`Demand`] has the keys that
//! these names were resolved to: it is what the dispatcher keeps while the consumer waits.
//!
//! Next: [`super::resolve`].

use std::sync::Arc;
use std::time::Duration;

use crate::messages::group::Subscription;
use crate::messages::key::Key;
use crate::messages::name::{GroupName, PartitionName, QueueName};

/// The most messages one pop brings.
const BATCH_MAX: u32 = 10_000;
/// The most partitions one pop brings.
const PARTITIONS_MAX: u32 = 1000;
/// The longest wait. Longer ones, up to `Duration::MAX`, would overflow the clock.
const WAIT_MAX: Duration = Duration::from_secs(24 * 3600);

/// A request for messages: from where, for which group, how many.
#[derive(Debug, Clone)]
#[must_use = "it is popped by `Messages::pop`"]
pub struct Pop {
    pub(super) scope: Scope,
    pub(super) group: GroupName,
    pub(super) subscription: Subscription,
    batch: u32,
    partitions: u32,
    auto_ack: bool,
    pub(super) wait: Duration,
}

/// From where a pop takes messages.
#[derive(Debug, Clone)]
pub(super) enum Scope {
    Queue(QueueName),
    Partition(QueueName, PartitionName),
    Space { namespace: Option<Arc<str>>, task: Option<Arc<str>> },
}

impl Pop {
    /// From any partition of a queue.
    pub fn queue(queue: QueueName) -> Self {
        Self::from(Scope::Queue(queue))
    }

    /// From one partition of a queue.
    pub fn partition(queue: QueueName, partition: PartitionName) -> Self {
        Self::from(Scope::Partition(queue, partition))
    }

    /// From any queue of a namespace, those with the higher priority first.
    pub fn namespace(namespace: impl Into<Arc<str>>) -> Self {
        Self::from(Scope::Space { namespace: Some(namespace.into()), task: None })
    }

    /// From any queue of a task, those with the higher priority first.
    pub fn task(task: impl Into<Arc<str>>) -> Self {
        Self::from(Scope::Space { namespace: None, task: Some(task.into()) })
    }

    /// From any queue of a task within a namespace, those with the higher priority first.
    pub fn namespace_and_task(namespace: impl Into<Arc<str>>, task: impl Into<Arc<str>>) -> Self {
        Self::from(Scope::Space { namespace: Some(namespace.into()), task: Some(task.into()) })
    }

    fn from(scope: Scope) -> Self {
        Self {
            scope,
            group: GroupName::queue_mode(),
            subscription: Subscription::All,
            batch: 1,
            partitions: 1,
            auto_ack: false,
            wait: Duration::ZERO,
        }
    }

    /// For which consumer group. Default: the consumers of a plain queue.
    pub fn group(mut self, group: GroupName) -> Self {
        self.group = group;
        self
    }

    /// Where the group begins, if this pop is its first. Default: with everything there is.
    pub fn subscription(mut self, subscription: Subscription) -> Self {
        self.subscription = subscription;
        self
    }

    /// How many messages at most, over all partitions. Default: 1; zero counts as one, more than
    /// 10,000 as 10,000.
    pub fn batch(mut self, messages: u32) -> Self {
        self.batch = messages.clamp(1, BATCH_MAX);
        self
    }

    /// From how many partitions at most. Default: 1; zero counts as one, more than 1,000 as 1,000.
    pub fn partitions(mut self, partitions: u32) -> Self {
        self.partitions = partitions.clamp(1, PARTITIONS_MAX);
        self
    }

    /// The messages count as settled once they are popped: durably, before they are returned.
    /// Messages that are lost after that are lost. Default: they are leased.
    pub fn auto_ack(mut self) -> Self {
        self.auto_ack = true;
        self
    }

    /// How long to wait for a message. Default: not at all; more than a day counts as a day.
    pub fn wait(mut self, time: Duration) -> Self {
        self.wait = time.min(WAIT_MAX);
        self
    }
}

/// A pop that waits: for which keys, and for how much.
#[derive(Debug)]
pub(super) struct Demand {
    pub(super) keys: Arc<[Key]>,
    pub(super) group: GroupName,
    pub(super) batch: usize,
    pub(super) partitions: usize,
    pub(super) auto_ack: bool,
}

impl Demand {
    pub(super) fn of(pop: &Pop, keys: Arc<[Key]>) -> Self {
        Self {
            keys,
            group: pop.group.clone(),
            batch: pop.batch as usize,
            partitions: pop.partitions as usize,
            auto_ack: pop.auto_ack,
        }
    }

    /// For how many partitions there is room: at most one for each message.
    pub(super) fn slots(&self) -> usize {
        self.partitions.min(self.batch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_a_day_of_waiting_counts_as_a_day() {
        let queue = || "mail".parse::<QueueName>().unwrap();

        assert_eq!(Pop::queue(queue()).wait(Duration::MAX).wait, WAIT_MAX);
        assert_eq!(Pop::queue(queue()).wait(Duration::from_secs(5)).wait, Duration::from_secs(5));
    }
}
