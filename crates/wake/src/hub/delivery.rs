//! Whether rings are looked for in time.
//!
//! Owns the watch over batons: handed to a waiter, but its look has not begun. Promises that the next waiter is woken too
//! when that takes longer than the delivery timeout. A ring counts as delivered when a look begins, not when it lies in
//! somebody's buffer.
//!
//! Next: [`super::runner`].

use std::task::Waker;
use std::time::Instant;

use super::Key;
use super::board::Board;
use super::entry::{Baton, Entry, WaiterId};
use super::wakes::Wakes;
use crate::clock;

impl<K: Key> Board<K> {
    /// When the oldest baton that is out should have been used.
    pub(crate) fn next_overdue(&self) -> Option<Instant> {
        self.handed.first_key_value().map(|(_, (at, _))| clock::after(*at, self.options.delivery_timeout))
    }

    /// Wakes the next waiter of every key whose baton has not been used in time. Answers how many there were.
    pub(crate) fn overtake(&mut self, now: Instant) -> (Wakes, usize) {
        let (mut wakes, mut late) = (Wakes::default(), 0);
        while self.next_overdue().is_some_and(|at| at <= now) {
            let Some((number, (_, key))) = self.handed.pop_first() else { break };
            let fresh = self.number();
            let Some(entry) = self.entries.get_mut(&key) else { continue };
            let Some(baton) = entry.baton().filter(|baton| baton.number == number) else { continue };
            late += 1;
            let ids = entry.overtake(baton, fresh);
            wakes.extend(self.wake(&key, ids, now));
        }
        (wakes, late)
    }

    /// The runner, if it would sleep too long. It sleeps on after a baton was used, so a busy key wakes it at most once per
    /// delivery timeout and not at every ring.
    pub(crate) fn hurry_runner(&mut self) -> Option<Waker> {
        let wanted = self.next_instant()?;
        if self.runner_at.is_none_or(|at| wanted < at) { self.runner.take() } else { None }
    }

    /// When the runner has something to do.
    pub(crate) fn next_instant(&self) -> Option<Instant> {
        match (self.dues.next(), self.next_overdue()) {
            (Some(due), Some(overdue)) => Some(due.min(overdue)),
            (due, overdue) => due.or(overdue),
        }
    }

    pub(super) fn forget_baton(&mut self, key: &K, holder: WaiterId) {
        let baton = self.entries.get(key).and_then(Entry::baton);
        if let Some(Baton { number, .. }) = baton.filter(|baton| baton.holder == holder) {
            self.handed.remove(&number);
        }
    }

    pub(super) fn note_baton(&mut self, key: &K, number: u64, now: Instant) {
        let out = self.entries.get(key).and_then(Entry::baton);
        if out.is_some_and(|baton| baton.number == number) {
            self.handed.entry(number).or_insert_with(|| (now, key.clone()));
        }
    }
}
