//! What this server counts, all since it was started.
//!
//! Owns the counters of the doors, and those of the wake engine as an observer of it. Next: [`crate::api::metrics`].

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

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

/// Bounds of the histogram, in microseconds.
pub(crate) const BUCKETS: [u64; 12] =
    [250, 500, 1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000];

/// How long something took.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    buckets: [AtomicU64; BUCKETS.len()],
    all: AtomicU64,
    sum_us: AtomicU64,
}

impl Histogram {
    fn note(&self, us: u64) {
        if let Some(bucket) = BUCKETS.iter().position(|bound| us <= *bound) {
            self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        }
        self.all.fetch_add(1, Ordering::Relaxed);
        self.sum_us.fetch_add(us, Ordering::Relaxed);
    }

    /// How many took at most as long as each bound, how many there were, and how long they took together.
    pub(crate) fn read(&self) -> ([u64; BUCKETS.len()], u64, u64) {
        let mut upto = 0;
        let cumulated = std::array::from_fn(|bucket: usize| {
            upto += self.buckets[bucket].load(Ordering::Relaxed);
            upto
        });
        (cumulated, self.all.load(Ordering::Relaxed), self.sum_us.load(Ordering::Relaxed))
    }
}

/// Everything that is counted.
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
    /// Requests whose route panicked: each is a defect.
    pub(crate) panics: Counter,
    pub(crate) parked: Ongoing,
    pub(crate) wake: Counters,
    /// From a ring that found somebody waiting to the end of the next look.
    pub(crate) wake_latency: Histogram,
    pub(crate) looked_keys: Counter,
    /// When the oldest ring that no look followed yet came, in microseconds since the start; zero for none.
    rung_at: AtomicU64,
}

impl Default for Figures {
    fn default() -> Self {
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
            wake_latency: Histogram::default(),
            looked_keys: Counter::default(),
            rung_at: AtomicU64::new(0),
        }
    }
}

impl Figures {
    /// Looks that found something.
    pub(crate) fn fruitful_looks(&self) -> u64 {
        self.wake.looks(Outcome::Filled) + self.wake.looks(Outcome::UnderFilled)
    }

    fn now_us(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX).max(1)
    }
}

impl Observer for Figures {
    fn observe(&self, event: &Event) {
        self.wake.observe(event);
        match event {
            Event::Rung { woken, .. } if *woken > 0 => {
                // Kept if there is one already: the oldest ring has waited longest.
                let _ = self.rung_at.compare_exchange(0, self.now_us(), Ordering::Relaxed, Ordering::Relaxed);
            }
            Event::Looked { keys, .. } => {
                self.looked_keys.add(*keys);
                let rung_at = self.rung_at.swap(0, Ordering::Relaxed);
                if rung_at != 0 {
                    self.wake_latency.note(self.now_us().saturating_sub(rung_at));
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
    fn a_look_after_a_ring_is_timed_once() {
        let figures = Figures::default();
        let rung = |woken| Event::Rung { cause: Cause::Pushed, woken };
        let looked = Event::Looked { cause: Cause::Pushed, outcome: Outcome::Filled, keys: 3 };

        figures.observe(&rung(0));
        figures.observe(&looked);
        assert_eq!(figures.wake_latency.read().1, 0, "nobody waited");
        figures.observe(&rung(1));
        figures.observe(&rung(1));
        figures.observe(&looked);
        figures.observe(&looked);

        assert_eq!(figures.wake_latency.read().1, 1);
        assert_eq!(
            (figures.wake.rings(Cause::Pushed), figures.fruitful_looks(), figures.looked_keys.read()),
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
