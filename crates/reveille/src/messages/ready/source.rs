//! Wakes the keys of this process that an announcement is about.
//!
//! Owns the hub of the queues, and their part of listener and heartbeat. A hint names a queue, and
//! a group and partition where these are known; it wakes every key of this node that it may be
//! about. Promises that a wake-up reaches also keys that are not waited for at the moment: a pop
//! that came back to such a key would otherwise find it known to be empty, and sleep.
//!
//! Next: [`super::waited_keys`], which finds the keys; then [`crate::messages::pop`].

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reveille_wake::{Cause, DueSource, Hub, HubOptions, Link, Runner};

use super::hint::About;
use super::waited_keys::{Announced, WaitedKeys};
use crate::database::Database;
use crate::messages::ids::{GroupId, PartitionId, QueueId};
use crate::messages::key::{self, Key};
use crate::messages::options::MessagesOptions;
use crate::node::{Column, Survey, WorkSource};

/// The name of the queues in hints.
const SOURCE: &str = "messages";
/// The heartbeat's question about all waited keys.
const SURVEY: Survey = Survey::new(include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/sql/messages/pop/survey.sql")));

pub(in crate::messages) struct MessageSource {
    hub: Hub<Key>,
    survey: Survey,
    waited: Mutex<WaitedKeys>,
    /// How often something was announced that may be about names: queues that came, went or moved.
    names_version: AtomicU64,
}

impl MessageSource {
    pub(super) fn new(database: &Database, options: &MessagesOptions) -> (Self, Runner<Key>) {
        let limits = HubOptions::default().max_waiters_per_key(options.waiters_max);
        let limits = match &options.observer {
            Some(observer) => limits.observer(Arc::clone(&observer.0)),
            None => limits,
        };
        let (hub, runner) = Hub::new(limits);
        let survey = SURVEY.in_schema(database.schema());
        (Self { hub, survey, waited: Mutex::default(), names_version: AtomicU64::default() }, runner)
    }

    /// Messages were pushed to these partitions by this process: remembered for the claim rounds
    /// that the push wakes.
    pub(super) fn pushed(&self, queue: QueueId, partitions: &[PartitionId]) {
        self.waited_keys().note_pushed(queue, partitions);
    }

    /// A pop is about to wait for these keys.
    pub(super) fn add_waited(&self, keys: &[Key]) {
        let mut index = self.waited_keys();
        index.add(keys, |key| self.hub.forget(key));
        if index.may_recover() {
            // Every second at most: this walks all keys that are waited for.
            let waited = self.hub.waited();
            self.hub.forget_unwaited();
            index.recover(waited, |key| self.hub.forget(key));
        }
    }

    pub(super) fn take_announced(&self, queue: QueueId, group: GroupId, most: usize) -> Announced {
        self.waited_keys().take_announced(queue, group, most)
    }

    pub(super) fn names_version(&self) -> u64 {
        self.names_version.load(Ordering::SeqCst)
    }

    /// Acts on every key the hint may be about. Returns `false` if the index cannot name them.
    fn for_each_key(&self, about: About, act: impl Fn(Key)) -> bool {
        let keys = self.waited_keys().keys_about(about);
        match keys {
            Some(keys) => keys.into_iter().for_each(act),
            None => return false,
        }
        true
    }

    fn waited_keys(&self) -> MutexGuard<'_, WaitedKeys> {
        self.waited.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WorkSource for MessageSource {
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
            self.names_version.fetch_add(1, Ordering::SeqCst);
        }
        let Some(about) = hint else {
            self.hub.wake_all(cause);
            return;
        };
        // Remembered before it wakes, so that the claim round finds the announced partition.
        let names_partition = self.waited_keys().note_hint(*about);
        let wake = |key: Key| {
            if names_partition { self.hub.wake_announced(&key, cause) } else { self.hub.wake(&key, cause) }
        };
        if !self.for_each_key(*about, wake) {
            self.hub.wake_all(cause);
        }
    }

    fn wake_after(&self, about: &About, delay: Duration) {
        let source = if matches!(about, About::LeaseEnd(..)) { DueSource::Lease } else { DueSource::Announced };
        // If the index cannot name the keys, the heartbeat's survey finds the due time.
        self.for_each_key(*about, |key| self.hub.wake_after(key, source, delay));
    }

    fn set_link(&self, link: Link) {
        // While the link was down, announcements about names may have been missed.
        self.names_version.fetch_add(1, Ordering::SeqCst);
        self.hub.set_link(link);
    }
}

impl std::fmt::Debug for MessageSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MessageSource").field("hub", &self.hub).finish_non_exhaustive()
    }
}
