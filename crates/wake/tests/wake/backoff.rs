//! How long fallback polling leaves an empty key alone.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use reveille_wake::{Backoff, BackoffOptions};

use crate::rig::ms;

#[test]
fn it_grows_after_the_threshold_up_to_the_cap() {
    let now = Instant::now();
    let mut backoff = Backoff::new(BackoffOptions::default());
    let pauses: Vec<Duration> = (0..8)
        .map(|_| {
            backoff.empty(now);
            backoff.pause()
        })
        .collect();

    assert_eq!(pauses, [100, 100, 100, 200, 400, 800, 1000, 1000].map(ms));
}

/// B3: after a wake an old pause must not go on.
#[test]
fn a_wake_beats_it() {
    let now = Instant::now();
    let mut backoff = Backoff::new(BackoffOptions::default());
    for _ in 0..10 {
        backoff.empty(now);
    }
    assert!(!backoff.is_ready(now + ms(999)));

    backoff.reset();

    assert!(backoff.is_ready(now));
    assert_eq!(backoff.pause(), ms(100));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

    #[test]
    fn the_pause_never_shrinks_and_never_leaves_its_bounds(
        base in 0_u64..10_000, cap in 0_u64..100_000, threshold in 0_u32..10,
        multiplier in -2.0_f64..1e30, rounds in 1_usize..60,
    ) {
        let options = BackoffOptions { base: ms(base), cap: ms(cap), threshold, multiplier };
        let now = Instant::now();
        let mut backoff = Backoff::new(options);
        let mut before = backoff.pause();
        for _ in 0..rounds {
            backoff.empty(now);
            prop_assert!(backoff.pause() >= before);
            prop_assert!(backoff.pause() <= ms(cap.max(base)));
            prop_assert!(backoff.is_ready(now + backoff.pause()));
            before = backoff.pause();
        }
    }
}
