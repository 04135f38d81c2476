//! What can go wrong, in words a caller can act on.

use std::error::Error as StdError;
use std::ops::Deref;
use std::sync::Arc;

use thiserror::Error;

use crate::batcher::Undone;
use crate::database::DatabaseError;

/// Why a name is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NameError {
    /// Nothing was given.
    #[error("the {what}'s name is empty")]
    Empty {
        /// What it was to name.
        what: &'static str,
    },
    /// It would not fit into an index.
    #[error("the {what}'s name is longer than 512 bytes")]
    TooLong {
        /// What it was to name.
        what: &'static str,
    },
    /// PostgreSQL's text cannot hold it.
    #[error("the {what}'s name contains a NUL character")]
    Nul {
        /// What it was to name.
        what: &'static str,
    },
}

/// Why something about messages could not be done. What is expected (an empty queue, a lost lease,
/// a duplicate) is a value and not here. One failure may be the answer to many callers, or to many
/// items of one: every clone has the whole cause.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum MessagesError {
    /// PostgreSQL refused or did not answer.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// A name is none.
    #[error(transparent)]
    Name(#[from] NameError),
    /// There is no such queue.
    #[error("there is no queue \"{queue}\"")]
    NoQueue {
        /// As it was asked for.
        queue: String,
    },
    /// There is no such consumer group.
    #[error("there is no consumer group \"{group}\"")]
    NoGroup {
        /// As it was asked for.
        group: String,
    },
    /// There is no such partition.
    #[error("there is no partition \"{partition}\"")]
    NoPartition {
        /// As it was asked for.
        partition: String,
    },
    /// A value is outside what is allowed.
    #[error("{what} must be {allowed}, not {given}")]
    OutOfRange {
        /// Which one.
        what: &'static str,
        /// What it may be.
        allowed: &'static str,
        /// What it was.
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
    /// The queue holds as many messages as it may.
    #[error("the queue \"{queue}\" is full")]
    QueueFull {
        /// Which one.
        queue: String,
    },
    /// A text that must be kept contains what PostgreSQL's text cannot hold.
    #[error("{what} contains a NUL character")]
    Nul {
        /// Which text.
        what: &'static str,
    },
    /// The queue is encrypted, and the key is not here.
    #[error("the encryption key {key_id} is not loaded")]
    NoKey {
        /// Which one.
        key_id: i32,
    },
    /// The queue is encrypted, and no key is here to write with.
    #[error("the queue \"{queue}\" is encrypted, and no encryption key is loaded")]
    NoWriteKey {
        /// Which one.
        queue: String,
    },
    /// What was stored is not what was sealed.
    #[error("a payload could not be opened: it was changed, or sealed with another key of the same number")]
    Sealed,
    /// Looks for messages fail: nobody can say whether there are any.
    #[error("could not look for messages: {0}")]
    Unavailable(String),
    /// The caller's own transaction refused it; it may have to be rolled back.
    #[error("the caller's transaction refused the push")]
    Caller {
        /// What its driver said.
        #[source]
        source: SharedError,
    },
    /// The queue has as many consumer groups as it may: delete some that nobody uses.
    #[error("the queue \"{queue}\" has {limit} consumer groups already, and may have no more")]
    TooManyGroups {
        /// Which one.
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

/// An error of somebody else's making, as it is, for several to hold.
#[derive(Debug, Clone)]
pub struct SharedError(Arc<dyn StdError + Send + Sync>);

impl SharedError {
    pub(crate) fn new(error: impl StdError + Send + Sync + 'static) -> Self {
        Self(Arc::new(error))
    }
}

/// Not an error itself, so that whoever follows the causes comes to the error that it holds.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clone_has_the_same_words_and_the_same_cause() {
        let said = std::io::Error::other("the driver's own words");
        let error = MessagesError::Caller { source: SharedError::new(said) };

        let shared = error.clone();

        assert_eq!(shared.to_string(), error.to_string());
        let cause = StdError::source(&shared).unwrap();
        assert_eq!(cause.downcast_ref::<std::io::Error>().unwrap().to_string(), "the driver's own words");
    }
}
