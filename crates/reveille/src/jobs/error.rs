//! What can go wrong with jobs, in words a caller can act on.

use std::error::Error;

use thiserror::Error;

use super::id::JobId;
use super::lifecycle::{State, Verb};
use crate::database::DatabaseError;
use crate::database::outage::SaysAway;

/// Why something about jobs could not be done. Expected results (a lost lease, a job that already
/// exists) are values, not errors.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum JobsError {
    /// PostgreSQL refused or did not answer. After a lost connection an enqueue may have happened:
    /// give it a unique key to be able to ask again.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// A value is outside what is allowed; the sentence says which and why.
    #[error("{0}")]
    Refused(String),
    /// The arguments, the metadata, the progress or the results are larger than allowed.
    #[error("{what} have {bytes} bytes, more than the {limit} allowed")]
    TooLarge {
        /// Which of them.
        what: &'static str,
        /// Their size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// A value could not be written as JSON, or is none.
    #[error("{what} are no JSON")]
    Json {
        /// Which one.
        what: &'static str,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// Another job has the same unique key, and the new one was to be refused.
    #[error("{0}")]
    Duplicate(String),
    /// The caller's own transaction refused it; it may have to be rolled back.
    #[error("the caller's transaction refused it")]
    Caller {
        /// The error of its driver.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// There is no such job, or not any more.
    #[error("there is no job {0}")]
    NoJob(JobId),
    /// The job is in a state in which this cannot be done.
    #[error("job {id} is {state}: {verb} is not possible")]
    WrongState {
        /// Which job.
        id: JobId,
        /// The state it is in.
        state: State,
        /// What was to be done.
        verb: Verb,
    },
    /// A worker with these options cannot start; every fault is listed.
    #[error("the worker cannot start: {}", .0.join("; "))]
    Worker(Vec<String>),
    /// The jobs are closing.
    #[error("the jobs are closing")]
    Closed,
}

impl SaysAway for JobsError {
    fn says_away(&self) -> bool {
        matches!(self, Self::Database(error) if error.says_away())
    }
}
