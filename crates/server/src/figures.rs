//! The counters of this server, all since it was started.
//!
//! Owns the counters of the HTTP interface, and those of the wake engine, which it observes. Next:
//! [`crate::api::metrics`].

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use prometheus::{Histogram, HistogramOpts};
use reveille_wake::{Counters, Event, Observer, Outcome};

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, count: usize) {
        self.0.fetch_add(count as u64, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Something that is going on, until the guard is dropped.
#[derive(Debug, Default)]
pub(crate) struct Ongoing(AtomicU64);

#[derive(Debug)]
pub(crate) struct Going<'o>(&'o Ongoing);

impl Ongoing {
    pub(crate) fn begin(&self) -> Going<'_> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Going(self)
    }

    pub(crate) fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Going<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Bounds of the histogram, in seconds.
const BUCKETS: [f64; 12] = [0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0];

/// All counters of a server.
#[derive(Debug)]
pub(crate) struct Figures {
    pub(crate) started: Instant,
    pub(crate) push_requests: Counter,
    pub(crate) pushed: Counter,
    pub(crate) duplicates: Counter,
    pub(crate) buffered: Counter,
    pub(crate) push_refused: Counter,
    pub(crate) pop_requests: Counter,
    pub(crate) pops_filled: Counter,
    pub(crate) pops_empty: Counter,
    pub(crate) pops_refused: Counter,
    pub(crate) popped: Counter,
    pub(crate) ack_requests: Counter,
    pub(crate) acked: Counter,
    pub(crate) ack_refused: Counter,
    pub(crate) dead: Counter,
    pub(crate) transactions: Counter,
    pub(crate) transactions_refused: Counter,
    pub(crate) overloaded: Counter,
    /// Requests whose route panicked. Each is a bug.
    pub(crate) panics: Counter,
    pub(crate) parked: Ongoing,
    pub(crate) wake: Counters,
    /// From a wake-up that found a waiting demand to the end of the next claim round.
    pub(crate) wake_latency: Histogram,
    pub(crate) round_keys: Counter,
    /// When the oldest wake-up came that no claim round has followed yet, in microseconds since the
    /// start; zero for none.
    woken_at: AtomicU64,
}

impl Default for Figures {
    fn default() -> Self {
        let help = "From a wake-up to the end of the claim round it caused.";
        let latency = HistogramOpts::new("reveille_wake_latency_seconds", help).buckets(BUCKETS.to_vec());
        Self {
            started: Instant::now(),
            push_requests: Counter::default(),
            pushed: Counter::default(),
            duplicates: Counter::default(),
            buffered: Counter::default(),
            push_refused: Counter::default(),
            pop_requests: Counter::default(),
            pops_filled: Counter::default(),
            pops_empty: Counter::default(),
            pops_refused: Counter::default(),
            popped: Counter::default(),
            ack_requests: Counter::default(),
            acked: Counter::default(),
            ack_refused: Counter::default(),
            dead: Counter::default(),
            transactions: Counter::default(),
            transactions_refused: Counter::default(),
            overloaded: Counter::default(),
            panics: Counter::default(),
            parked: Ongoing::default(),
            wake: Counters::default(),
            wake_latency: Histogram::with_opts(latency).expect("the bounds rise, and the name is letters"),
            round_keys: Counter::default(),
            woken_at: AtomicU64::new(0),
        }
    }
}

impl Figures {
    /// Claim rounds that found something.
    pub(crate) fn fruitful_rounds(&self) -> u64 {
        self.wake.rounds(Outcome::Filled) + self.wake.rounds(Outcome::UnderFilled)
    }

    fn now_us(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX).max(1)
    }
}

impl Observer for Figures {
    fn observe(&self, event: &Event) {
        self.wake.observe(event);
        match event {
            Event::Woken { woken, .. } if *woken > 0 => {
                // An earlier wake-up is kept: it has waited longest.
                let _ = self.woken_at.compare_exchange(0, self.now_us(), Ordering::Relaxed, Ordering::Relaxed);
            }
            Event::RoundEnded { keys, .. } => {
                self.round_keys.add(*keys);
                let woken_at = self.woken_at.swap(0, Ordering::Relaxed);
                if woken_at != 0 {
                    let us = self.now_us().saturating_sub(woken_at);
                    self.wake_latency.observe(Duration::from_micros(us).as_secs_f64());
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use reveille_wake::Cause;

    use super::*;

    #[test]
    fn a_claim_round_after_a_wake_up_is_timed_once() {
        let figures = Figures::default();
        let woken = |woken| Event::Woken { cause: Cause::Pushed, woken };
        let round = Event::RoundEnded { cause: Cause::Pushed, outcome: Outcome::Filled, keys: 3 };

        figures.observe(&woken(0));
        figures.observe(&round);
        assert_eq!(figures.wake_latency.get_sample_count(), 0, "nobody waited");
        figures.observe(&woken(1));
        figures.observe(&woken(1));
        figures.observe(&round);
        figures.observe(&round);

        assert_eq!(figures.wake_latency.get_sample_count(), 1);
        assert_eq!(
            (figures.wake.wakes(Cause::Pushed), figures.fruitful_rounds(), figures.round_keys.read()),
            (3, 3, 9)
        );
    }

    #[test]
    fn what_goes_on_ends_with_its_guard() {
        let ongoing = Ongoing::default();
        let (first, second) = (ongoing.begin(), ongoing.begin());
        assert_eq!(ongoing.read(), 2);
        drop((first, second));
        assert_eq!(ongoing.read(), 0);
    }
}
