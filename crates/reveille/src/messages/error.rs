//! The errors of messages, in words that a caller can act on.

use std::error::Error as StdError;
use std::ops::Deref;
use std::sync::Arc;

use thiserror::Error;

use crate::batcher::Undone;
use crate::database::DatabaseError;
use crate::database::outage::SaysAway;

/// Why a name is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NameError {
    /// It is empty.
    #[error("the {what}'s name is empty")]
    Empty {
        /// What the name is for.
        what: &'static str,
    },
    /// It would not fit into an index.
    #[error("the {what}'s name is longer than 512 bytes")]
    TooLong {
        /// What the name is for.
        what: &'static str,
    },
    /// PostgreSQL's text cannot hold it.
    #[error("the {what}'s name contains a NUL character")]
    Nul {
        /// What the name is for.
        what: &'static str,
    },
}

/// Why a call about messages failed. What is expected (an empty queue, a lost lease, a duplicate)
/// is a value and not an error. One failure may be the answer to many callers, or to many items of
/// one call: every clone has the whole cause.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum MessagesError {
    /// PostgreSQL refused or did not answer.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// A name is refused.
    #[error(transparent)]
    Name(#[from] NameError),
    /// There is no such queue.
    #[error("there is no queue \"{queue}\"")]
    NoQueue {
        /// Its name.
        queue: String,
    },
    /// There is no such consumer group.
    #[error("there is no consumer group \"{group}\"")]
    NoGroup {
        /// Its name.
        group: String,
    },
    /// There is no such partition.
    #[error("there is no partition \"{partition}\"")]
    NoPartition {
        /// Its name.
        partition: String,
    },
    /// A value is not allowed.
    #[error("{what} must be {allowed}, not {given}")]
    OutOfRange {
        /// Which value.
        what: &'static str,
        /// What is allowed.
        allowed: &'static str,
        /// The value.
        given: String,
    },
    /// A payload is larger than allowed.
    #[error("the payload has {bytes} bytes, more than the {limit} allowed")]
    PayloadTooLarge {
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The queue has as many messages as it may.
    #[error("the queue \"{queue}\" is full")]
    QueueFull {
        /// Its name.
        queue: String,
    },
    /// A text contains a character that PostgreSQL's text cannot hold.
    #[error("{what} contains a NUL character")]
    Nul {
        /// Which text.
        what: &'static str,
    },
    /// A payload is encrypted, and this process does not have the key.
    #[error("the encryption key {key_id} is not loaded")]
    NoKey {
        /// The number of the key.
        key_id: i32,
    },
    /// The queue is encrypted, and this process has no key to encrypt with.
    #[error("the queue \"{queue}\" is encrypted, and no encryption key is loaded")]
    NoWriteKey {
        /// Its name.
        queue: String,
    },
    /// The stored payload is not the one that was encrypted.
    #[error("a payload could not be opened: it was changed, or sealed with another key of the same number")]
    Sealed,
    /// Claim rounds fail: it is not known whether there are messages.
    #[error("could not claim messages: {0}")]
    Unavailable(String),
    /// The caller's own transaction refused it; it may have to be rolled back.
    #[error("the caller's transaction refused the push")]
    Caller {
        /// The error of its driver.
        #[source]
        source: SharedError,
    },
    /// The queue has as many consumer groups as it may: delete some that are not used.
    #[error("the queue \"{queue}\" has {limit} consumer groups already, and may have no more")]
    TooManyGroups {
        /// Its name.
        queue: String,
        /// How many it may have.
        limit: i32,
    },
    /// Too many wait already, or too much is in flight.
    #[error("too much is asked at once: {0}")]
    Overloaded(String),
    /// The queues are closing.
    #[error("the queues are closing")]
    Closed,
}

/// The error of another library, shared by all clones.
#[derive(Debug, Clone)]
pub struct SharedError(Arc<dyn StdError + Send + Sync>);

impl SharedError {
    pub(crate) fn new(error: impl StdError + Send + Sync + 'static) -> Self {
        Self(Arc::new(error))
    }
}

/// Not an error itself: a caller that follows the causes finds the error inside.
impl Deref for SharedError {
    type Target = dyn StdError + Send + Sync;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl From<Undone> for MessagesError {
    fn from(undone: Undone) -> Self {
        match undone {
            Undone::Ended => Self::Closed,
            Undone::Failed(error) => Self::Database(error),
        }
    }
}

impl SaysAway for MessagesError {
    fn says_away(&self) -> bool {
        matches!(self, Self::Database(error) if error.says_away())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clone_has_the_same_words_and_the_same_cause() {
        let cause = std::io::Error::other("the driver's own words");
        let error = MessagesError::Caller { source: SharedError::new(cause) };

        let shared = error.clone();

        assert_eq!(shared.to_string(), error.to_string());
        let cause = StdError::source(&shared).unwrap();
        assert_eq!(cause.downcast_ref::<std::io::Error>().unwrap().to_string(), "the driver's own words");
    }
}
