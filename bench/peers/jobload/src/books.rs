//! What this process ran: how often each job, and when it began.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Kept for every job number below a limit.
#[derive(Debug)]
pub struct Books {
    began: Vec<AtomicU64>,
    ran: AtomicU64,
    twice: AtomicU64,
}

impl Books {
    pub(crate) fn new(limit: usize) -> Self {
        let mut began = Vec::new();
        began.resize_with(limit, AtomicU64::default);
        Self { began, ran: AtomicU64::new(0), twice: AtomicU64::new(0) }
    }

    /// A handler for job `n` runs now.
    pub fn ran(&self, n: u64) {
        let known = usize::try_from(n).ok().and_then(|n| self.began.get(n));
        let first =
            known.is_some_and(|began| began.compare_exchange(0, now(), Ordering::Relaxed, Ordering::Relaxed).is_ok());
        let tally = if first { &self.ran } else { &self.twice };
        tally.fetch_add(1, Ordering::Relaxed);
    }

    /// How many different jobs ran here.
    pub(crate) fn count(&self) -> u64 {
        self.ran.load(Ordering::Relaxed)
    }

    /// How many runs were not the first of their job in this process.
    pub(crate) fn twice(&self) -> u64 {
        self.twice.load(Ordering::Relaxed)
    }

    /// When the jobs of this range began, in microseconds of the machine's clock; 0 if they did
    /// not.
    pub(crate) fn began(&self, range: std::ops::Range<usize>) -> Vec<u64> {
        self.began.get(range).unwrap_or_default().iter().map(|began| began.load(Ordering::Relaxed)).collect()
    }

    /// One hexadecimal digit for four jobs: which of them ran.
    pub(crate) fn seen(&self) -> String {
        let four = |four: &[AtomicU64]| {
            let bits =
                four.iter().enumerate().map(|(place, began)| u32::from(began.load(Ordering::Relaxed) > 0) << place);
            char::from_digit(bits.sum(), 16).unwrap_or('0')
        };
        self.began.chunks(4).map(four).collect()
    }
}

/// The clock that all processes of this machine share, in microseconds since 1970.
#[expect(clippy::disallowed_methods, reason = "two processes compare what they saw; nothing is due by it")]
#[must_use]
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}
