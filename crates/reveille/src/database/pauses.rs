//! How long to pause before the next attempt: longer after each failure, and with jitter.
//!
//! The only back-off towards the database. (The pause of one key after empty claims,
//! `reveille_wake::Backoff`, is a policy of its own: it has settings, and no jitter.)

use std::time::Duration;

/// When to try to give back what a lost claim may hold, each after the attempt before.
///
/// Not jittered: the second attempt is for a claim that was on its way when the connection broke,
/// so it must not come at once; the last ones are for a server that is away for a while.
pub(crate) const GIVE_BACK: [Duration; 7] = [
    Duration::ZERO,
    Duration::from_millis(250),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(5),
    Duration::from_secs(15),
    Duration::from_secs(30),
];

/// The pauses after consecutive failures.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pauses {
    first: Duration,
    longest: Duration,
    /// Failures that are followed by no pause.
    spared: u32,
    failures: u32,
}

impl Pauses {
    /// The first is up to `first`, each further one up to twice as long as the one before, none
    /// beyond `longest`.
    pub(crate) const fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, spared: 0, failures: 0 }
    }

    /// The same, but the first failure is followed by no pause: for where a lost connection is the
    /// likeliest failure, and a new one works.
    pub(crate) const fn after_one_at_once(first: Duration, longest: Duration) -> Self {
        Self { first, longest, spared: 1, failures: 0 }
    }

    /// An attempt failed: how long to pause before the next.
    pub(crate) fn next(&mut self) -> Duration {
        let longest = self.longest_after(self.failures);
        self.failures = self.failures.saturating_add(1);
        // Without jitter, nodes that lost PostgreSQL together come back together and collide for
        // minutes.
        longest.mul_f64(fastrand::f64())
    }

    /// An attempt succeeded.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }

    fn longest_after(&self, failures: u32) -> Duration {
        let doubled = |times| self.first.saturating_mul(2_u32.saturating_pow(times)).min(self.longest);
        failures.checked_sub(self.spared).map_or(Duration::ZERO, doubled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Duration = Duration::from_millis(50);
    const LONGEST: Duration = Duration::from_secs(2);

    fn longest(pauses: Pauses) -> Vec<u128> {
        (0..8).map(|failures| pauses.longest_after(failures).as_millis()).collect()
    }

    #[test]
    fn pauses_double_up_to_the_longest() {
        let pauses = Pauses::new(FIRST, LONGEST);

        assert_eq!(longest(pauses), [50, 100, 200, 400, 800, 1600, 2000, 2000]);
        assert_eq!(pauses.longest_after(u32::MAX), LONGEST);
    }

    #[test]
    fn one_attempt_may_be_at_once() {
        assert_eq!(longest(Pauses::after_one_at_once(FIRST, LONGEST)), [0, 50, 100, 200, 400, 800, 1600, 2000]);
    }

    #[test]
    fn no_pause_exceeds_the_longest_and_a_success_resets_it() {
        let mut pauses = Pauses::after_one_at_once(FIRST, LONGEST);

        assert_eq!(pauses.next(), Duration::ZERO);
        for _ in 0..100 {
            assert!(pauses.next() <= LONGEST);
        }
        pauses.reset();
        assert_eq!(pauses.next(), Duration::ZERO);
    }
}
