//! Wakers on their way out of the lock.
//!
//! Owns what a change under the lock decided: which tasks to wake after it. A waker runs foreign
//! code, which may well wake a key again.
//!
//! Next: the task that wakes.

use std::task::Waker;

/// Whom to wake once the lock is free.
#[derive(Debug, Default)]
#[must_use = "somebody sleeps until it is woken"]
pub(crate) struct Wakes {
    /// How many waiters that is; several may share one task.
    pub(crate) count: usize,
    pub(crate) wakers: Vec<Waker>,
}

impl Wakes {
    pub(crate) fn extend(&mut self, other: Self) {
        self.count += other.count;
        self.wakers.extend(other.wakers);
    }

    /// Call it without the lock.
    pub(crate) fn wake(self) {
        for waker in self.wakers {
            waker.wake();
        }
    }
}
