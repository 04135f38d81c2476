//! The tasks to wake once the lock is free.
//!
//! Owns the wakers that a change under the lock collected. They are called after it, because a
//! waker runs foreign code, which may use the hub.
//!
//! Next: the task that is woken.

use std::task::Waker;

/// The tasks to wake once the lock is free.
#[derive(Debug, Default)]
#[must_use = "these tasks sleep until they are woken"]
pub(crate) struct Wakes {
    /// How many waiters there are; several may share one task.
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
