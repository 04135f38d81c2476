//! The limits of a hub.
//!
//! Owns the options of a [`Hub`](super::Hub). Every setting has a default; zero limits count as
//! one.
//!
//! Next: [`super::board`].

use std::sync::Arc;
use std::time::Duration;

use crate::observe::{Observer, SharedObserver};

/// What a caller chooses about a hub.
#[derive(Clone, Debug)]
pub struct HubOptions {
    pub(crate) max_keys: usize,
    pub(crate) max_waiters: usize,
    pub(crate) max_waiters_per_key: usize,
    pub(crate) max_dues: usize,
    pub(crate) linger: Duration,
    pub(crate) grace: Duration,
    pub(crate) observer: SharedObserver,
}

impl Default for HubOptions {
    fn default() -> Self {
        Self {
            max_keys: 100_000,
            max_waiters: 100_000,
            max_waiters_per_key: 10_000,
            max_dues: 100_000,
            linger: Duration::from_secs(60),
            grace: Duration::ZERO,
            observer: SharedObserver::new(Arc::new(())),
        }
    }
}

impl HubOptions {
    /// How many keys may be known at once, including those that outlive their waiters. Default:
    /// 100,000.
    #[must_use]
    pub fn max_keys(mut self, limit: usize) -> Self {
        self.max_keys = limit.max(1);
        self
    }

    /// How many waiters may exist. Default: 100,000.
    #[must_use]
    pub fn max_waiters(mut self, limit: usize) -> Self {
        self.max_waiters = limit.max(1);
        self
    }

    /// How many waiters one key may have. Default: 10,000.
    #[must_use]
    pub fn max_waiters_per_key(mut self, limit: usize) -> Self {
        self.max_waiters_per_key = limit.max(1);
        self
    }

    /// How many due times may be held. Of those beyond it the farthest become one instant at which
    /// every key is woken. Default: 100,000.
    #[must_use]
    pub fn max_dues(mut self, limit: usize) -> Self {
        self.max_dues = limit.max(1);
        self
    }

    /// How long a key known to be empty outlives its last waiter, so that the next one need not
    /// claim. Default: 60 s; zero means not at all.
    #[must_use]
    pub fn linger(mut self, time: Duration) -> Self {
        self.linger = time;
        self
    }

    /// A pause that is added to every due time. Default: zero.
    #[must_use]
    pub fn grace(mut self, time: Duration) -> Self {
        self.grace = time;
        self
    }

    /// The observer of all [events](crate::Event). Default: none.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = SharedObserver::new(observer);
        self
    }
}
