//! Wakes whoever waits for messages: here at once, elsewhere through the broadcaster.
//!
//! Owns the hub of the queues and their place in listener and heartbeat. A hint names a queue, and a group and partition
//! where they are known; it rings every key of this node that it can be about. Promises that a ring reaches also the keys
//! nobody waits under at the moment: a pop that comes back finds its key known to be empty, and would sleep.
//!
//! Every change that can make a partition poppable calls a method here after its commit: docs/messages.md lists them.
//!
//! Next: [`super::pop`].

mod hint;
mod known;
mod places;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reveille_wake::{Cause, DueSource, Hub, HubOptions, Link, Runner};

use super::ids::{GroupId, PartitionId, QueueId};
use super::key::{self, Key};
use super::options::MessagesOptions;
use crate::database::{Broadcaster, Column, Database, Survey, WorkSource};
use hint::About;
use known::Known;
pub(super) use places::News;

/// The name of the queues in hints.
pub(super) const SOURCE: &str = "messages";
/// What the heartbeat asks.
const SURVEY: Survey = Survey::new(include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/sql/messages/pop/survey.sql")));
/// A push to more partitions than this is announced as one to the queue.
const PARTITIONS_NAMED_MAX: usize = 8;

pub(super) struct Bell {
    hub: Hub<Key>,
    /// Until the first pop starts it.
    runner: Mutex<Option<Runner<Key>>>,
    broadcaster: Broadcaster,
    survey: Survey,
    known: Mutex<Known>,
    /// How often something was said that may be about names: queues that came, went or moved.
    heard: AtomicU64,
}

impl Bell {
    pub(super) fn new(database: &Database, options: &MessagesOptions) -> Self {
        let limits = HubOptions::default().max_waiters_per_key(options.waiters_max);
        let limits = match &options.observer {
            Some(observer) => limits.observer(std::sync::Arc::clone(&observer.0)),
            None => limits,
        };
        let (hub, runner) = Hub::new(limits);
        Self {
            hub,
            runner: Mutex::new(Some(runner)),
            broadcaster: database.broadcaster(),
            survey: SURVEY.in_schema(database.schema()),
            known: Mutex::default(),
            heard: AtomicU64::default(),
        }
    }

    /// Messages were pushed to these partitions of the queue.
    pub(super) fn pushed(&self, queue: QueueId, partitions: &[PartitionId]) {
        if partitions.is_empty() || partitions.len() > PARTITIONS_NAMED_MAX {
            self.known().push(queue, partitions);
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

    /// The same for another cause, or for partitions that are not known one by one.
    pub(super) fn freed_by(&self, queue: QueueId, group: GroupId, partition: Option<PartitionId>, cause: Cause) {
        self.announce(About::Group(queue, group, partition), cause);
    }

    /// A partition becomes claimable for that group after `delay`: a retry, the end of a short lease.
    pub(super) fn after(&self, queue: QueueId, group: GroupId, partition: PartitionId, delay: Duration) {
        self.broadcaster.announce_after(SOURCE, &About::Group(queue, group, Some(partition)), delay);
    }

    /// A lease was made that ends after `lease`: if its holder dies, others must look then. One announcement at a time is
    /// enough for a group, because whoever looks then learns of the next end.
    pub(super) fn leased(&self, queue: QueueId, group: GroupId, lease: Duration) {
        if self.known().announces_lease(queue, group, lease) {
            self.broadcaster.announce_after(SOURCE, &About::LeaseEnd(queue, group), lease);
        }
    }

    /// An option of the queue changed, or a pause of it ended, or it or one of its groups is gone.
    pub(super) fn queue_changed(&self, queue: QueueId) {
        self.announce(About::Queue(queue), Cause::Configured);
        self.new_queue();
    }

    /// A queue was made, or moved to another namespace or task.
    pub(super) fn new_queue(&self) {
        self.announce(About::Names, Cause::Configured);
    }

    /// Nobody can say what this may have made ready.
    pub(super) fn everything(&self) {
        self.announce(About::Everything, Cause::Configured);
    }

    /// Waits until what was announced has been sent: a program that only pushes may exit right after.
    pub(super) async fn flush(&self) {
        self.broadcaster.flush().await;
    }

    /// Whether this process pops, and so lives on: its hints can leave when they like.
    pub(super) fn serves(&self) -> bool {
        self.runner.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    pub(super) fn hub(&self) -> &Hub<Key> {
        &self.hub
    }

    /// What rings the hub's dues; `None` once it was taken.
    pub(super) fn take_runner(&self) -> Option<Runner<Key>> {
        self.runner.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Somebody is about to wait for these keys.
    pub(super) fn meet(&self, keys: &[Key]) {
        let mut known = self.known();
        known.meet(keys, |key| self.hub.forget(key));
        if known.may_recover() {
            // Every second at most: this walks all keys that are waited for.
            let waited = self.hub.waited();
            self.hub.forget_unwaited();
            known.recover(waited, |key| self.hub.forget(key));
        }
    }

    /// What was said by place since this was last asked for the group: where to claim without searching. At most `most`
    /// partitions; the rest stays.
    pub(super) fn news(&self, queue: QueueId, group: GroupId, most: usize) -> News {
        self.known().news(queue, group, most)
    }

    /// Grows with everything that is said about names, before it rings.
    pub(super) fn heard(&self) -> u64 {
        self.heard.load(Ordering::SeqCst)
    }

    /// Rings here, and elsewhere: the broadcaster rings every source of our name in this process, us included.
    fn announce(&self, about: About, cause: Cause) {
        self.broadcaster.announce(SOURCE, &about, cause);
    }

    fn each(&self, about: About, act: impl Fn(Key)) -> bool {
        let keys = self.known().keys_about(about);
        match keys {
            Some(keys) => keys.into_iter().for_each(act),
            None => return false,
        }
        true
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WorkSource for Bell {
    type Key = Key;
    type Hint = About;

    fn name(&self) -> &str {
        SOURCE
    }

    fn hub(&self) -> &Hub<Key> {
        &self.hub
    }

    fn survey(&self) -> &Survey {
        &self.survey
    }

    fn columns(&self, keys: &[Key]) -> Vec<Column> {
        key::columns(keys)
    }

    fn wake(&self, hint: Option<&About>, cause: Cause) {
        if hint.is_none_or(|about| matches!(about, About::Names | About::Everything)) {
            self.heard.fetch_add(1, Ordering::SeqCst);
        }
        let Some(about) = hint else {
            self.hub.ring_all(cause);
            return;
        };
        // Remembered before it wakes: a claim round for this wake finds the announced partition.
        let told = self.known().hear(*about);
        let ring = |key: Key| if told { self.hub.ring_told(&key, cause) } else { self.hub.ring(&key, cause) };
        if !self.each(*about, ring) {
            self.hub.ring_all(cause);
        }
    }

    fn wake_after(&self, about: &About, delay: Duration) {
        let source = if matches!(about, About::LeaseEnd(..)) { DueSource::Lease } else { DueSource::Announced };
        // Too many keys to know: the heartbeat's survey finds it.
        self.each(*about, |key| self.hub.ring_after(key, source, delay));
    }

    fn set_link(&self, link: Link) {
        self.heard.fetch_add(1, Ordering::SeqCst); // what was announced while the link was down
        self.hub.set_link(link);
    }
}

impl std::fmt::Debug for Bell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bell").field("hub", &self.hub).finish_non_exhaustive()
    }
}
