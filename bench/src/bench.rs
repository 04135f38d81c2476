//! How long to measure, which parts, and what to print meanwhile.

use std::time::Duration;

use reveille_testkit::scenario::progress;

/// One run of one scenario.
#[derive(Debug)]
pub(crate) struct Bench {
    quick: bool,
    only: Option<String>,
    chaos: reveille_chaos::Options,
}

impl Bench {
    pub(crate) fn new(quick: bool, only: Option<String>, chaos: reveille_chaos::Options) -> Self {
        Self { quick, only, chaos }
    }

    /// The options of the chaos run.
    pub(crate) fn chaos(&self) -> &reveille_chaos::Options {
        &self.chaos
    }

    /// Whether a part of the scenario is to be measured; prints its name if it is.
    pub(crate) fn wants(&self, part: &str) -> bool {
        let wanted = self.only.as_ref().is_none_or(|only| part.contains(only.as_str()));
        if wanted {
            progress(part);
        }
        wanted
    }

    /// One of two values: for a quick run and for a full one.
    pub(crate) fn pick<T>(&self, quick: T, full: T) -> T {
        if self.quick { quick } else { full }
    }

    /// How long one measurement runs.
    pub(crate) fn span(&self) -> Duration {
        self.pick(Duration::from_millis(500), Duration::from_secs(2))
    }

    /// How often everything is measured. Rounds alternate between ours and its peers, so that a
    /// noisy minute hits all of them.
    pub(crate) fn rounds(&self) -> usize {
        self.pick(3, 5)
    }
}
