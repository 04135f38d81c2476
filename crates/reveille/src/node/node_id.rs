//! The id of a process.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::str::FromStr;

/// A number that no other process has; new with every start, so that no process inherits the id of
/// a dead one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeId(i64);

impl NodeId {
    pub(crate) fn random() -> Self {
        // Keyed by the system's randomness; a generator seeded with the time since boot could
        // repeat itself elsewhere.
        let number = RandomState::new().hash_one(std::process::id()) >> 1;
        Self(number.cast_signed().max(1))
    }

    /// The node whose row has this number.
    pub(crate) fn of(number: i64) -> Self {
        Self(number)
    }

    pub(crate) fn number(self) -> i64 {
        self.0
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for NodeId {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}
