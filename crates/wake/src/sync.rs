//! The one lock everything here stands on.
//!
//! Owns the choice between std's mutex and shuttle's (`--cfg shuttle`), so that tests can run the
//! same code under every interleaving. Promises that no caller ever sees a poisoned lock: the state
//! machines behind it finish each change before anything can panic. Refuses to be held across an
//! await or while a waker runs: wakers are collected under the lock and woken after it.
//!
//! Next: [`crate::hub`].

use std::sync::PoisonError;

#[cfg(shuttle)]
use shuttle::sync as ground;
#[cfg(not(shuttle))]
use std::sync as ground;

pub(crate) use ground::MutexGuard;

/// A mutex whose `lock` cannot fail.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(ground::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(ground::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
