//! The keys that consumers of this process wait for, and which of them an announcement is about.
//!
//! Owns the hub of the queues and their place in listener and heartbeat. A hint names a queue, and
//! a group and partition where they are known; it wakes every key of this node that it can be
//! about. Promises that a wake reaches also the keys that are not waited for at the moment: a pop
//! that comes back finds its key known to be empty, and would sleep.
//!
//! Next: [`super::known`], which finds the keys; then [`crate::messages::pop`].

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reveille_wake::{Cause, DueSource, Hub, HubOptions, Link, Runner};

use super::hint::About;
use super::known::Known;
use super::places::News;
use crate::database::Database;
use crate::messages::ids::{GroupId, PartitionId, QueueId};
use crate::messages::key::{self, Key};
use crate::messages::options::MessagesOptions;
use crate::node::{Column, Survey, WorkSource};

/// The name of the queues in hints.
const SOURCE: &str = "messages";
/// What the heartbeat asks.
const SURVEY: Survey = Survey::new(include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/sql/messages/pop/survey.sql")));

pub(in crate::messages) struct MessageSource {
    hub: Hub<Key>,
    survey: Survey,
    known: Mutex<Known>,
    /// How often something was announced that may be about names: queues that came, went or moved.
    heard: AtomicU64,
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
        (Self { hub, survey, known: Mutex::default(), heard: AtomicU64::default() }, runner)
    }

    /// Messages were pushed to these partitions, here: remembered for the claim rounds that the
    /// push wakes.
    pub(super) fn pushed(&self, queue: QueueId, partitions: &[PartitionId]) {
        self.known().push(queue, partitions);
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

    pub(super) fn news(&self, queue: QueueId, group: GroupId, most: usize) -> News {
        self.known().news(queue, group, most)
    }

    pub(super) fn heard(&self) -> u64 {
        self.heard.load(Ordering::SeqCst)
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
            self.heard.fetch_add(1, Ordering::SeqCst);
        }
        let Some(about) = hint else {
            self.hub.wake_all(cause);
            return;
        };
        // Remembered before it wakes: a claim round for this wake finds the announced partition.
        let told = self.known().hear(*about);
        let ring = |key: Key| if told { self.hub.wake_announced(&key, cause) } else { self.hub.wake(&key, cause) };
        if !self.each(*about, ring) {
            self.hub.wake_all(cause);
        }
    }

    fn wake_after(&self, about: &About, delay: Duration) {
        let source = if matches!(about, About::LeaseEnd(..)) { DueSource::Lease } else { DueSource::Announced };
        // Too many keys to know: the heartbeat's survey finds it.
        self.each(*about, |key| self.hub.wake_after(key, source, delay));
    }

    fn set_link(&self, link: Link) {
        self.heard.fetch_add(1, Ordering::SeqCst); // what was announced while the link was down
        self.hub.set_link(link);
    }
}

impl std::fmt::Debug for MessageSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MessageSource").field("hub", &self.hub).finish_non_exhaustive()
    }
}
