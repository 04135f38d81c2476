//! Wakes the fetches of this process when work may be ready in one queue.
//!
//! `QueueSource` owns the hub of a queue and the keys its fetches wait under; listener, heartbeat
//! and notifier reach the queue through it. A hint names the queue, not the key: tags, sessions and
//! versions decide which slots can use a row, so every key of the queue is woken. Promises that a
//! due time also reaches the keys that no fetch waits under at the moment: a fetch that comes back
//! finds its key known to be empty and would sleep.
//!
//! Next: [`crate::work_queue`].

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reveille::service::{Column, Hint, Survey, WorkSource};
use reveille_wake::{Cause, DueSource, Hub};

use crate::queue::QueueKey;

/// More different keys than this are not remembered: slots are few.
const KEYS_MAX: usize = 4096;

/// A hint is about every key of the queue.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct EveryKey;

impl Hint for EveryKey {
    fn to_text(&self) -> String {
        "all".to_owned()
    }

    fn from_text(_: &str) -> Option<Self> {
        Some(Self)
    }
}

/// One queue, as the listener, the heartbeat and the notifier see it.
#[derive(Debug)]
pub(crate) struct QueueSource<K: QueueKey> {
    name: String,
    survey: Survey,
    hub: Hub<K>,
    /// Every key that a fetch ever waited under.
    keys: Mutex<HashSet<K>>,
    /// How often an announcement or a survey showed that there may be work.
    wakes: AtomicU64,
}

impl<K: QueueKey> QueueSource<K> {
    pub(crate) fn new(name: String, survey: Survey, hub: Hub<K>) -> Self {
        Self { name, survey, hub, keys: Mutex::default(), wakes: AtomicU64::new(0) }
    }

    /// A fetch is about to wait under the key.
    pub(crate) fn meet(&self, key: &K) {
        let mut keys = self.keys();
        if keys.len() < KEYS_MAX && !keys.contains(key) {
            keys.insert(key.clone());
        }
    }

    /// There may be work now, and the dispatcher of this process may not have started yet.
    pub(crate) fn count(&self) {
        self.wakes.fetch_add(1, Ordering::SeqCst);
    }

    /// How often there may have been work.
    pub(crate) fn wakes(&self) -> u64 {
        self.wakes.load(Ordering::SeqCst)
    }

    fn keys(&self) -> MutexGuard<'_, HashSet<K>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: QueueKey> WorkSource for QueueSource<K> {
    type Key = K;
    type Hint = EveryKey;

    fn name(&self) -> &str {
        &self.name
    }

    fn hub(&self) -> &Hub<K> {
        &self.hub
    }

    fn survey(&self) -> &Survey {
        &self.survey
    }

    fn columns(&self, keys: &[K]) -> Vec<Column> {
        K::columns(keys)
    }

    fn wake(&self, _: Option<&EveryKey>, cause: Cause) {
        self.wakes.fetch_add(1, Ordering::SeqCst);
        self.hub.wake_all(cause);
    }

    fn wake_after(&self, _: &EveryKey, delay: Duration) {
        for key in self.keys().iter() {
            self.hub.wake_after(key.clone(), DueSource::Announced, delay);
        }
    }

    fn wake_key(&self, key: &K, cause: Cause) {
        self.wakes.fetch_add(1, Ordering::SeqCst);
        self.hub.wake(key, cause);
    }
}
