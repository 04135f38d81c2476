//! The limits, as values.
//!
//! Owns the engine's answer at a limit. A refusal is expected, not a failure: HTTP answers 429.
//!
//! Next: [`crate::hub`].

/// Why the engine takes no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Refused {
    /// No more keys may be waited for.
    Keys {
        /// The limit that was reached.
        limit: usize,
    },
    /// No more waiters, or demands of one dispatcher, may exist.
    Waiters {
        /// The limit that was reached.
        limit: usize,
    },
    /// No more waiters may wait for this key.
    WaitersOfKey {
        /// The limit that was reached.
        limit: usize,
    },
    /// A demand named no key, or too many.
    KeysOfDemand {
        /// How many keys a demand may name.
        limit: usize,
    },
    /// The service is shutting down.
    Closed,
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Keys { limit } => write!(f, "{limit} keys are waited for already"),
            Self::Waiters { limit } => write!(f, "{limit} waiters exist already"),
            Self::WaitersOfKey { limit } => write!(f, "{limit} waiters wait for this key already"),
            Self::KeysOfDemand { limit } => write!(f, "a demand names between 1 and {limit} keys"),
            Self::Closed => f.write_str("no more waiters are taken, the service is shutting down"),
        }
    }
}

impl std::error::Error for Refused {}
