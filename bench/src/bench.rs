//! How long to measure, and what to tell whoever watches.

use std::time::Duration;

/// One run of one scenario.
#[derive(Debug)]
pub(crate) struct Bench {
    quick: bool,
}

impl Bench {
    pub(crate) fn new(quick: bool) -> Self {
        Self { quick }
    }

    /// One of two values: for a quick run and for a full one.
    pub(crate) fn pick<T>(&self, quick: T, full: T) -> T {
        if self.quick { quick } else { full }
    }

    /// How long one measurement runs.
    pub(crate) fn span(&self) -> Duration {
        self.pick(Duration::from_millis(500), Duration::from_secs(2))
    }

    /// How often everything is measured. Rounds alternate between the rivals, so that a noisy minute hits all of them.
    pub(crate) fn rounds(&self) -> usize {
        self.pick(3, 5)
    }
}

/// Tells whoever watches what is being done now.
pub(crate) fn progress(what: &str) {
    eprintln!("… {what}");
}
