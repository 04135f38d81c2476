//! How long to wait before trying a connection again.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(5);

/// At once the first time, then longer and longer, with full jitter: nodes that lost PostgreSQL together would otherwise
/// come back together, and stay in step.
#[derive(Debug, Default)]
pub(super) struct Pause {
    failures: u32,
}

impl Pause {
    pub(super) fn next(&mut self) -> Duration {
        let failures = self.failures;
        self.failures = failures.saturating_add(1);
        if failures == 0 {
            return Duration::ZERO;
        }
        let longest = FIRST.saturating_mul(2_u32.saturating_pow(failures - 1)).min(LONGEST);
        longest.mul_f64(fastrand::f64())
    }

    pub(super) fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_try_is_at_once_and_no_pause_exceeds_the_longest() {
        let mut pause = Pause::default();

        assert_eq!(pause.next(), Duration::ZERO);
        for _ in 0..100 {
            assert!(pause.next() <= LONGEST);
        }
        pause.reset();
        assert_eq!(pause.next(), Duration::ZERO);
    }
}
