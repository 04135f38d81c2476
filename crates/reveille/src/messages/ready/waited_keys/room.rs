//! Makes room in the index of waited keys when it is full.
//!
//! Owns what the index notes while there are too many keys. Promises that a key is forgotten only
//! if no pop waits for it or is about to; that the search for such a key is short, however many
//! keys there are; and that an overflow ends only when every waited key has room again.

use std::time::Duration;

use tokio::time::Instant;

use super::{KEYS_MAX, WaitedKeys};
use crate::messages::key::Key;

/// A key that was just added is not yet waited for in the hub, so the hub cannot say whether a pop
/// needs it. For so long the key is kept in any case.
pub(super) const KEPT_FOR: Duration = Duration::from_secs(10);
/// How many waited keys are skipped in search of one that can be forgotten.
const SKIPPED_MAX: usize = 64;
/// How often the index tries to find room for all waited keys again after there were too many.
const RECOVERY_EVERY: Duration = Duration::from_secs(1);

/// Some keys that may be waited for found no room.
#[derive(Debug)]
pub(super) struct Overflow {
    /// When a key last found no room.
    last_left_out: Instant,
    /// When the index last tried to find room for all waited keys.
    last_recovery: Instant,
}

impl WaitedKeys {
    /// Whether there is room for one more key, if need be in the place of another.
    pub(super) fn make_room(&mut self, now: Instant, forget: &impl Fn(&Key) -> bool) -> bool {
        if self.keys.len() < KEYS_MAX {
            return true;
        }
        for _ in 0..SKIPPED_MAX {
            let oldest = match self.keys.front() {
                Some((key, added_at)) if now.duration_since(*added_at) >= KEPT_FOR => key.clone(),
                _ => return false,
            };
            if forget(&oldest) {
                self.remove(&oldest);
                return true;
            }
            if let Some(added_at) = self.keys.to_back(&oldest) {
                *added_at = now;
            }
        }
        false
    }

    /// A key was left out.
    pub(super) fn note_overflow(&mut self, now: Instant) {
        self.overflow.get_or_insert(Overflow { last_left_out: now, last_recovery: now }).last_left_out = now;
    }

    /// Whether it is time to find room for all waited keys. Not while a key that found no room may
    /// be on its way to the hub: it would be missed.
    pub(in crate::messages::ready) fn may_recover(&self) -> bool {
        let now = Instant::now();
        let due = |overflow: &Overflow| {
            now.duration_since(overflow.last_left_out) >= KEPT_FOR
                && now.duration_since(overflow.last_recovery) >= RECOVERY_EVERY
        };
        self.overflow.as_ref().is_some_and(due)
    }

    /// `waited` are all keys that are waited for, and the hub knows no others.
    pub(in crate::messages::ready) fn recover(&mut self, waited: Vec<Key>, forget: impl Fn(&Key) -> bool) {
        let now = Instant::now();
        for key in waited {
            if self.keys.contains_key(&key) {
                continue;
            }
            if !self.make_room(now, &forget) {
                if let Some(overflow) = &mut self.overflow {
                    overflow.last_recovery = now;
                }
                return;
            }
            self.insert(key, now);
        }
        self.overflow = None;
    }
}
