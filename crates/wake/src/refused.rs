//! The limits, as values.
//!
//! Owns the engine's answer when it will not take one more. An interface expects a refusal (HTTP
//! 429); it is no failure.
//!
//! Next: [`crate::hub`].

/// Why the engine would not take one more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Refused {
    /// As many keys are waited for as may be.
    Keys {
        /// The limit that was reached.
        limit: usize,
    },
    /// As many waiters exist as may.
    Waiters {
        /// The limit that was reached.
        limit: usize,
    },
    /// As many wait for this one key as may.
    WaitersOfKey {
        /// The limit that was reached.
        limit: usize,
    },
    /// A demand named no key, or more than it may.
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
