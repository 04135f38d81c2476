//! Which keys a board keeps.
//!
//! Owns the limits of a board, and the time for which a key known to be empty outlives its last
//! waiter. Promises that any other key is forgotten with its last waiter, so that a newcomer
//! claims.
//!
//! Next: [`super::board`].

use std::time::Instant;

use super::Key;
use super::board::Board;
use crate::clock;
use crate::refused::Refused;

impl<K: Key> Board<K> {
    pub(super) fn check_limits(&mut self, key: &K) -> Result<(), Refused> {
        let options = &self.options;
        if self.waiters >= options.max_waiters {
            return Err(Refused::Waiters { limit: options.max_waiters });
        }
        if let Some(entry) = self.entries.get(key) {
            let limit = options.max_waiters_per_key;
            return if entry.waiters() < limit { Ok(()) } else { Err(Refused::WaitersOfKey { limit }) };
        }
        let limit = options.max_keys;
        if self.entries.len() >= limit {
            self.forget_oldest();
        }
        if self.entries.len() < limit { Ok(()) } else { Err(Refused::Keys { limit }) }
    }

    /// Decides what becomes of a key when its last waiter has gone.
    pub(super) fn retire(&mut self, key: &K, now: Instant) {
        let Some(entry) = self.entries.get(key).filter(|entry| entry.waiters() == 0) else { return };
        if !entry.is_clean(self.trust) || self.options.linger.is_zero() {
            self.entries.remove(key);
            return;
        }
        let place = self.number();
        self.lingering.insert(place, (clock::after(now, self.options.linger), key.clone()));
        if let Some(entry) = self.entries.get_mut(key) {
            entry.lingers = Some(place);
        }
    }

    pub(super) fn sweep(&mut self, now: Instant) {
        while self.lingering.first_key_value().is_some_and(|(_, (until, _))| *until <= now) {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some((_, (_, key))) = self.lingering.pop_first() {
            self.entries.remove(&key);
        }
    }

    /// Forgets the key if it has no waiters, and answers whether that is so.
    pub(super) fn forget_unwaited(&mut self, key: &K) -> bool {
        if self.entries.get(key).is_some_and(|entry| entry.waiters() > 0) {
            return false;
        }
        self.forget(key);
        true
    }

    pub(super) fn forget_all_unwaited(&mut self) {
        for (_, key) in std::mem::take(&mut self.lingering).into_values() {
            self.entries.remove(&key);
        }
    }

    pub(super) fn forget(&mut self, key: &K) {
        if let Some(place) = self.entries.remove(key).and_then(|entry| entry.lingers) {
            self.lingering.remove(&place);
        }
    }
}
