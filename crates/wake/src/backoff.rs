//! How long fallback polling leaves one key alone after empty rounds.
//!
//! Owns the growing pause of one key. Promises that the pause stays between base and cap, never
//! shrinks while rounds stay empty, and that a wake ends it at once. Applies only to rounds of
//! fallback polling.
//!
//! Next: [`crate::dispatcher`].

use std::time::{Duration, Instant};

use crate::clock;

/// The settings of a back-off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BackoffOptions {
    /// The pause before it grows. Default: 100 ms; zero means no back-off at all.
    pub base: Duration,
    /// The longest pause it grows to. Default: 1 s.
    pub cap: Duration,
    /// How many consecutive empty rounds pass before it grows. Default: 3; zero grows at the first.
    pub threshold: u32,
    /// What it is multiplied by at each further empty round. Default: 2; values below 1 count as 1.
    pub multiplier: f64,
}

impl Default for BackoffOptions {
    fn default() -> Self {
        Self { base: Duration::from_millis(100), cap: Duration::from_secs(1), threshold: 3, multiplier: 2.0 }
    }
}

/// The back-off of one key.
#[derive(Clone, Debug)]
pub struct Backoff {
    options: BackoffOptions,
    empties: u32,
    pause: Duration,
    not_before: Option<Instant>,
}

impl Backoff {
    /// A key that may be claimed from now.
    pub const fn new(options: BackoffOptions) -> Self {
        Self { options, empties: 0, pause: options.base, not_before: None }
    }

    /// A claim round found nothing at `now`.
    pub fn empty(&mut self, now: Instant) {
        self.empties = self.empties.saturating_add(1);
        if self.empties > self.options.threshold {
            self.pause = self.grown();
        }
        self.not_before = Some(clock::after(now, self.pause));
    }

    /// A wake, or work found: the key may be claimed from at once.
    pub fn reset(&mut self) {
        *self = Self::new(self.options);
    }

    /// Whether fallback polling may claim from the key.
    pub fn is_ready(&self, now: Instant) -> bool {
        self.not_before.is_none_or(|at| at <= now)
    }

    /// The present pause.
    pub const fn pause(&self) -> Duration {
        self.pause
    }

    fn grown(&self) -> Duration {
        // Seconds as f64: a Duration multiplied by a large factor panics on overflow.
        let seconds = self.pause.as_secs_f64() * self.options.multiplier.max(1.0);
        let cap = self.options.cap.max(self.options.base);
        Duration::try_from_secs_f64(seconds).map_or(cap, |grown| grown.min(cap))
    }
}
