//! The one kind of lock in this crate.
//!
//! Owns the choice between std's mutex and shuttle's (`--cfg shuttle`), so that tests can run the
//! same code under every interleaving. Promises that no caller ever sees a poisoned lock: the state
//! machines behind it finish each change before anything can panic. It must not be held across an
//! await or while a waker runs: wakers are collected under the lock and woken after it.
//!
//! Next: [`crate::hub`].

use std::sync::PoisonError;

#[cfg(shuttle)]
use shuttle::sync as implementation;
#[cfg(not(shuttle))]
use std::sync as implementation;

pub(crate) use implementation::MutexGuard;

/// A mutex whose `lock` cannot fail.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(implementation::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(implementation::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
