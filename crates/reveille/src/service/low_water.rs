//! How often a search may read from the start of a queue.
//!
//! Claims, acks and pushes leave dead entries behind at the front of an index. Vacuum removes them,
//! but not while a transaction elsewhere keeps an old snapshot: then every search from the start
//! reads all of them again, and throughput falls from minute to minute. So a service remembers a
//! *low-water mark*, the place up to which such a search saw nothing left, and later searches begin
//! there. What was committed late, given back or moved lies before the mark, and only a search from
//! the start finds it.
//!
//! Owns the policy all services share: slow searches from the start take a twentieth of the time,
//! and no work waits for one longer than a bound. A service owns its marks, and measures for itself
//! whether a search was cheap: then the next one begins at the start too.

use std::time::{Duration, Instant};

/// A slow search rests for so many times as long as it took.
const SHARE: u32 = 20;
/// The longest rest, unless a service names another.
pub(crate) const REST_MAX: Duration = Duration::from_millis(800);

/// When one kind of search may be made again. Default: at once.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rest {
    until: Option<Instant>,
}

impl Rest {
    /// After a search that was not cheap, ended then and took so long.
    pub(crate) fn after(ended: Instant, took: Duration, max: Duration) -> Self {
        Self { until: ended.checked_add(took.saturating_mul(SHARE).min(max)) }
    }

    pub(crate) fn is_over(self, now: Instant) -> bool {
        self.until.is_none_or(|until| until <= now)
    }

    /// How long it still lasts.
    pub(crate) fn left(self, now: Instant) -> Duration {
        self.until.map_or(Duration::ZERO, |until| until.saturating_duration_since(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_rests_for_twenty_times_as_long_as_it_took_within_the_bound() {
        let now = Instant::now();
        let rest = Rest::after(now, Duration::from_millis(10), REST_MAX);

        assert_eq!(rest.left(now), Duration::from_millis(200));
        assert!(!rest.is_over(now + Duration::from_millis(199)));
        assert!(rest.is_over(now + Duration::from_millis(200)));
        assert_eq!(Rest::after(now, Duration::from_secs(9), REST_MAX).left(now), REST_MAX);
    }

    #[test]
    fn without_a_slow_search_there_is_no_rest() {
        let now = Instant::now();

        assert!(Rest::default().is_over(now));
        assert_eq!(Rest::default().left(now), Duration::ZERO);
    }
}
