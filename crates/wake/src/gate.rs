//! When the next claim round may begin, at the earliest.
//!
//! Owns the pause after a failed round and the spacing under a flood of hints. Promises that a
//! round that fails at once does not spin, and that forged hints cause a bounded number of rounds
//! per second, while an honest wake after a quiet moment waits for nothing.
//!
//! Next: [`crate::dispatcher`].

use std::time::{Duration, Instant};

use crate::clock;
use crate::outcome::Outcome;

/// How many hinted rounds in a row may find nothing before they are spaced: other processes often
/// take what was announced to all.
const FRUITLESS: u32 = 8;

/// The pause between rounds then: at most 200 rounds per second, the rate to which honest hints
/// are coalesced anyway.
const SPACING: Duration = Duration::from_millis(5);

#[derive(Clone, Debug, Default)]
pub(crate) struct Gate {
    not_before: Option<Instant>,
    fruitless: u32,
    free_since: Option<Instant>,
}

impl Gate {
    /// A round ended. `hinted` says that only hints from outside and due times caused it; `pause`
    /// is how long to wait after a failure.
    pub(crate) fn round_ended(&mut self, outcome: Outcome, hinted: bool, now: Instant, pause: Duration) {
        match outcome {
            Outcome::Empty | Outcome::Contended if hinted => self.fruitless = self.fruitless.saturating_add(1),
            Outcome::UnderFilled | Outcome::Filled => self.fruitless = 0,
            Outcome::Empty | Outcome::Contended | Outcome::Failed => {}
        }
        self.not_before = match outcome {
            Outcome::Failed => Some(clock::after(now, pause)),
            _ if self.fruitless > FRUITLESS => Some(now + SPACING),
            _ => None,
        };
        self.free_since = Some(self.not_before.unwrap_or(now));
    }

    /// Since when a round could have begun.
    pub(crate) fn free_since(&self) -> Option<Instant> {
        self.free_since
    }

    /// The link is back: try at once.
    pub(crate) fn open(&mut self) {
        self.not_before = None;
    }

    /// When it opens, if it is shut.
    pub(crate) fn opens_at(&self, now: Instant) -> Option<Instant> {
        self.not_before.filter(|at| *at > now)
    }
}
