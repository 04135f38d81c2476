//! Reads the monotonic clock, in one place.
//!
//! Owns nothing. Promises that a test with tokio's paused clock sees the same time as its timers.
//! Refuses the wall clock: the database decides what is due, only delays reach this crate, and a
//! process sleeps on the monotonic clock.
//!
//! Next: [`crate::dues`].

use std::time::{Duration, Instant};

pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// `delay` after `from`, but at most a year: a delay read from a row may be anything, and an
/// instant would overflow.
pub(crate) fn after(from: Instant, delay: Duration) -> Instant {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
    from + delay.min(YEAR)
}

pub(crate) fn timer(at: Instant) -> tokio::time::Instant {
    tokio::time::Instant::from_std(at)
}
