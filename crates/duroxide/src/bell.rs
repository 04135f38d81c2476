//! Wakes whoever waits for one queue: here at once, elsewhere through the broadcaster.
//!
//! Owns the hub of a queue and its place in listener and heartbeat. A hint names the queue, not the key: which slots can
//! use a row is decided by tags, sessions and versions, so every key of the queue is rung. Promises that a due reaches also
//! the keys nobody waits under at the moment: a fetch that comes back finds its key known to be empty and would sleep.
//!
//! Next: [`crate::lane`].

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reveille::database::{Broadcaster, Column, Hint, Survey, WorkSource};
use reveille_wake::{Cause, DueSource, Hub};
use tokio::time::Instant;

use crate::queue::QueueKey;

/// More different keys than this are not remembered: slots are few.
const KEYS_MAX: usize = 4096;
/// A hint is about every key of the queue.
#[derive(Debug)]
pub(crate) struct EveryKey;

impl Hint for EveryKey {
    fn to_text(&self) -> String {
        "all".to_owned()
    }

    fn from_text(_: &str) -> Option<Self> {
        Some(Self)
    }
}

#[derive(Debug)]
pub(crate) struct Bell<K: QueueKey> {
    name: String,
    survey: Survey,
    hub: Hub<K>,
    broadcaster: Broadcaster,
    /// Every key that was ever waited for.
    keys: Mutex<HashSet<K>>,
    /// How often somebody said that there may be work.
    rings: AtomicU64,
    /// Until when the end of a lease has been announced.
    announced: Mutex<Option<Instant>>,
}

impl<K: QueueKey> Bell<K> {
    pub(crate) fn new(name: String, survey: Survey, hub: Hub<K>, broadcaster: Broadcaster) -> Self {
        Self {
            name,
            survey,
            hub,
            broadcaster,
            keys: Mutex::default(),
            rings: AtomicU64::new(0),
            announced: Mutex::default(),
        }
    }

    /// Somebody is about to wait for the key.
    pub(crate) fn meet(&self, key: &K) {
        let mut keys = self.keys();
        if keys.len() < KEYS_MAX && !keys.contains(key) {
            keys.insert(key.clone());
        }
    }

    /// There may be work now, here and elsewhere.
    pub(crate) fn ring(&self) {
        self.rings.fetch_add(1, Ordering::SeqCst);
        // Rings here, too: once more by ourselves, and every message would cost a second look that finds nothing.
        self.broadcaster.announce(&self.name, &EveryKey, Cause::Pushed);
    }

    /// How often it was rung, by whomever.
    pub(crate) fn rings(&self) -> u64 {
        self.rings.load(Ordering::SeqCst)
    }

    /// There may be work now, for this node alone: a turn ended, and what arrived meanwhile was announced by its sender.
    pub(crate) fn ring_here(&self, cause: Cause) {
        self.hub.ring_all(cause);
    }

    /// There will be work after `delay`.
    pub(crate) fn ring_after(&self, delay: Duration) {
        self.broadcaster.announce_after(&self.name, &EveryKey, delay);
    }

    /// A lock was taken that ends after `lock`: if its holder dies, others must look then. One announcement at a time is
    /// enough, because whoever looks then learns of the next end.
    pub(crate) fn leased(&self, lock: Duration) {
        let now = Instant::now();
        let mut announced = self.announced.lock().unwrap_or_else(PoisonError::into_inner);
        if announced.is_some_and(|until| until > now) {
            return;
        }
        *announced = now.checked_add(lock);
        drop(announced);
        self.ring_after(lock);
    }

    /// Waits until what was announced has been sent.
    pub(crate) async fn flush(&self) {
        self.broadcaster.flush().await;
    }

    fn due(&self, delay: Duration) {
        for key in self.keys().iter() {
            self.hub.ring_after(key.clone(), DueSource::Announced, delay);
        }
    }

    fn keys(&self) -> MutexGuard<'_, HashSet<K>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: QueueKey> WorkSource for Bell<K> {
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
        self.rings.fetch_add(1, Ordering::SeqCst);
        self.hub.ring_all(cause);
    }

    fn wake_after(&self, _: &EveryKey, delay: Duration) {
        self.due(delay);
    }

    fn wake_key(&self, key: &K, cause: Cause) {
        self.rings.fetch_add(1, Ordering::SeqCst);
        self.hub.ring(key, cause);
    }
}
