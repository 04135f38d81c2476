//! What happened, for metrics, logs and tests.
//!
//! Owns the list of everything worth counting in the engine. Promises that each event is observed
//! once and outside every lock, so an observer may use the hub. An observer should be quick: it
//! runs in the task that wakes or claims.
//!
//! Next: your program, which turns [`Event`]s into metrics and logs.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::cause::Cause;
use crate::link::Link;
use crate::outcome::Outcome;
use crate::poll_mode::PollModeChange;
use crate::refused::Refused;

/// Something worth counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A key was woken.
    Woken {
        /// Why.
        cause: Cause,
        /// How many sleeping waiters woke up.
        woken: usize,
    },
    /// A claim round ended.
    RoundEnded {
        /// Why it was made.
        cause: Cause,
        /// What it found.
        outcome: Outcome,
        /// How many keys it was for.
        keys: usize,
    },
    /// A fallback round or fallback polling found work that no wake had announced.
    Missed {
        /// Why the round was made.
        cause: Cause,
    },
    /// A woken key was not claimed from in time although the dispatcher was free.
    Undelivered,
    /// Fallback polling began or ended.
    PollMode(PollModeChange),
    /// The link changed.
    Link(Link),
    /// A limit was reached.
    Refused(Refused),
    /// A lease whose demand had gone was given back.
    Returned,
}

/// Observes what happens.
pub trait Observer: Send + Sync + 'static {
    /// Something happened.
    fn observe(&self, event: &Event);
}

/// Observes nothing.
impl Observer for () {
    fn observe(&self, _event: &Event) {}
}

impl<F: Fn(&Event) + Send + Sync + 'static> Observer for F {
    fn observe(&self, event: &Event) {
        self(event);
    }
}

/// An observer that can be cloned and printed.
#[derive(Clone)]
pub(crate) struct SharedObserver(Arc<dyn Observer>);

impl SharedObserver {
    pub(crate) fn new(observer: Arc<dyn Observer>) -> Self {
        Self(observer)
    }

    pub(crate) fn report(&self, event: Event) {
        self.0.observe(&event);
    }
}

impl fmt::Debug for SharedObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedObserver")
    }
}

/// Counts events, for tests and small programs.
#[derive(Debug, Default)]
pub struct Counters {
    wakes: [AtomicU64; Cause::ALL.len()],
    rounds: [AtomicU64; Outcome::ALL.len()],
    missed: AtomicU64,
    undelivered: AtomicU64,
    poll_mode_changes: AtomicU64,
    link_changes: AtomicU64,
    refused: AtomicU64,
    returned: AtomicU64,
}

impl Counters {
    /// Wakes with this cause.
    pub fn wakes(&self, cause: Cause) -> u64 {
        self.wakes[cause.index()].load(Ordering::Relaxed)
    }

    /// Claim rounds with this outcome.
    pub fn rounds(&self, outcome: Outcome) -> u64 {
        self.rounds[outcome.index()].load(Ordering::Relaxed)
    }

    /// All claim rounds.
    pub fn all_rounds(&self) -> u64 {
        Outcome::ALL.into_iter().map(|outcome| self.rounds(outcome)).sum()
    }

    /// Missed wakes.
    pub fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }

    /// Wakes that were not claimed for in time.
    pub fn undelivered(&self) -> u64 {
        self.undelivered.load(Ordering::Relaxed)
    }

    /// How often fallback polling began or ended.
    pub fn poll_mode_changes(&self) -> u64 {
        self.poll_mode_changes.load(Ordering::Relaxed)
    }

    /// Changes of the link.
    pub fn link_changes(&self) -> u64 {
        self.link_changes.load(Ordering::Relaxed)
    }

    /// Refusals.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Leases given back because their demand had gone.
    pub fn returned(&self) -> u64 {
        self.returned.load(Ordering::Relaxed)
    }
}

impl Observer for Counters {
    fn observe(&self, event: &Event) {
        let counter = match event {
            Event::Woken { cause, .. } => &self.wakes[cause.index()],
            Event::RoundEnded { outcome, .. } => &self.rounds[outcome.index()],
            Event::Missed { .. } => &self.missed,
            Event::Undelivered => &self.undelivered,
            Event::PollMode(_) => &self.poll_mode_changes,
            Event::Link(_) => &self.link_changes,
            Event::Refused(_) => &self.refused,
            Event::Returned => &self.returned,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}
