//! How often something may be done: at once while it is rare, together with others when it is not.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// Hints a second that a node sends, and acts on, in the long run, however many are announced or
/// forged.
const PER_SECOND: f64 = 200.0;
/// Hints of a short burst that need not wait.
const BURST: f64 = 20.0;

#[derive(Debug)]
pub(super) struct Budget {
    left: f64,
    counted_at: Instant,
}

impl Budget {
    pub(super) fn new() -> Self {
        Self { left: BURST, counted_at: Instant::now() }
    }

    /// Returns when there is room for one more. Safe to drop: then nothing was spent.
    pub(super) async fn spend(&mut self) {
        let now = Instant::now();
        self.left = (self.left + now.duration_since(self.counted_at).as_secs_f64() * PER_SECOND).min(BURST);
        self.counted_at = now;
        if self.left < 1.0 {
            sleep(Duration::from_secs_f64((1.0 - self.left) / PER_SECOND)).await;
            self.left = 1.0;
            self.counted_at = Instant::now();
        }
        self.left -= 1.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_is_free_and_a_stream_is_held_to_the_rate() {
        let began = Instant::now();
        let mut budget = Budget::new();

        for _ in 0..20 {
            budget.spend().await;
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
        for _ in 0..200 {
            budget.spend().await;
        }

        let took = began.elapsed();
        assert!(took >= Duration::from_millis(990) && took <= Duration::from_millis(1300), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_rare_never_waits() {
        let mut budget = Budget::new();

        for _ in 0..100 {
            tokio::time::advance(Duration::from_millis(10)).await;
            let before = Instant::now();
            budget.spend().await;
            assert_eq!(before.elapsed(), Duration::ZERO);
        }
    }
}
