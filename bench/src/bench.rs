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

    /// How long one measurement runs.
    pub(crate) fn span(&self) -> Duration {
        if self.quick { Duration::from_millis(500) } else { Duration::from_secs(3) }
    }

    /// How often everything is measured. Rounds alternate between the rivals, so that a noisy minute hits all of them.
    pub(crate) fn rounds(&self) -> usize {
        if self.quick { 3 } else { 7 }
    }
}

/// Tells whoever watches what is being done now.
pub(crate) fn progress(what: &str) {
    eprintln!("… {what}");
}
