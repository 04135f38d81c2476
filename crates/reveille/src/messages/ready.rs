//! Announces what became ready: to consumers of this process at once, to other nodes through the
//! broadcaster.
//!
//! Owns the list of what can be announced: every change that can make a partition poppable calls a
//! method here after its commit (docs/messages.md has the table). Promises that the consumers of
//! this process are woken before the method returns, and that hints for other nodes are coalesced.
//!
//! Next: [`source`], which wakes the keys that an announcement is about; then [`super::pop`].

mod hint;
mod source;
mod waited_keys;

use std::sync::Arc;
use std::time::Duration;

use reveille_wake::{Cause, Hub, Runner};

use super::ids::{GroupId, PartitionId, QueueId};
use super::key::Key;
use super::options::MessagesOptions;
use crate::node::WorkSource;
use crate::service::{Context, Notifier};
use hint::About;
pub(super) use source::MessageSource;
pub(super) use waited_keys::Announced;

/// A push to more partitions than this is announced as a push to the queue.
const PARTITIONS_NAMED_MAX: usize = 8;

#[derive(Debug)]
pub(super) struct MessageNotifier {
    notifier: Arc<Notifier<MessageSource>>,
}

impl MessageNotifier {
    pub(super) fn new(context: &Arc<Context>, options: &MessagesOptions) -> (Self, Runner<Key>) {
        let (source, runner) = MessageSource::new(context.database(), options);
        (Self { notifier: Arc::new(Notifier::new(context, &Arc::new(source))) }, runner)
    }

    /// Messages were pushed to these partitions of the queue.
    pub(super) fn pushed(&self, queue: QueueId, partitions: &[PartitionId]) {
        if partitions.is_empty() || partitions.len() > PARTITIONS_NAMED_MAX {
            self.source().pushed(queue, partitions);
            self.announce(About::Queue(queue), Cause::Pushed);
            return;
        }
        for partition in partitions {
            self.announce(About::Partition(queue, *partition), Cause::Pushed);
        }
    }

    /// An ack, a nack or a release made a partition claimable again for that group.
    pub(super) fn freed(&self, queue: QueueId, group: GroupId, partition: PartitionId) {
        self.freed_by(queue, group, Some(partition), Cause::Settled);
    }

    /// The same for another cause. Without a partition: some partitions of the group.
    pub(super) fn freed_by(&self, queue: QueueId, group: GroupId, partition: Option<PartitionId>, cause: Cause) {
        self.announce(About::Group(queue, group, partition), cause);
    }

    /// A partition becomes claimable for that group after `delay`: a retry, the end of a short
    /// lease.
    pub(super) fn freed_after(&self, queue: QueueId, group: GroupId, partition: PartitionId, delay: Duration) {
        self.notifier.announce_after(&About::Group(queue, group, Some(partition)), delay);
    }

    /// A lease of the group was made that ends after `lease`: if its holder dies, others must claim
    /// then.
    pub(super) fn leased(&self, queue: QueueId, group: GroupId, lease: Duration) {
        self.notifier.leased(&About::LeaseEnd(queue, group), lease);
    }

    /// The queue was configured, resumed or deleted, or one of its groups was deleted.
    pub(super) fn queue_changed(&self, queue: QueueId) {
        self.announce(About::Queue(queue), Cause::Configured);
        self.new_names();
    }

    /// Queues or partitions were created, or a queue moved to another namespace or task.
    pub(super) fn new_names(&self) {
        self.announce(About::Names, Cause::Configured);
    }

    /// Any partition of any queue may have become ready.
    pub(super) fn everything(&self) {
        self.announce(About::Everything, Cause::Configured);
    }

    /// Waits until every hint has been sent: a program that only pushes may exit right after.
    pub(super) async fn flush(&self) {
        self.notifier.flush().await;
    }

    /// The same if this process only pushes, at most once in `interval`.
    pub(super) async fn flush_if_alone_every(&self, interval: Duration) {
        self.notifier.flush_if_alone_every(interval).await;
    }

    pub(super) fn notifier(&self) -> &Arc<Notifier<MessageSource>> {
        &self.notifier
    }

    pub(super) fn hub(&self) -> &Hub<Key> {
        self.source().hub()
    }

    /// A pop is about to wait for these keys: from now on announcements find them.
    pub(super) fn add_waited(&self, keys: &[Key]) {
        self.source().add_waited(keys);
    }

    /// The partitions that were announced to the group since the last call: where to claim without
    /// a search. At most `most` of them; the others stay.
    pub(super) fn take_announced(&self, queue: QueueId, group: GroupId, most: usize) -> Announced {
        self.source().take_announced(queue, group, most)
    }

    /// Grows with every announcement about names, before the announcement wakes.
    pub(super) fn names_version(&self) -> u64 {
        self.source().names_version()
    }

    fn source(&self) -> &MessageSource {
        self.notifier.source()
    }

    fn announce(&self, about: About, cause: Cause) {
        self.notifier.announce(&about, cause);
    }
}
