//! What can go wrong with jobs, in words a caller can act on.

use std::error::Error;

use thiserror::Error;

use super::id::JobId;
use super::lifecycle::{State, Verb};
use crate::database::DatabaseError;

/// Why something about jobs could not be done. What is expected (a lost lease, a job that was
/// there) is a value and not here.
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
    /// The arguments, the metadata, the words of progress or the results are larger than allowed.
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
    /// Another job has the same unique key, and the newcomer asked for an error.
    #[error("{0}")]
    Duplicate(String),
    /// The caller's own transaction refused it; it may have to be rolled back.
    #[error("the caller's transaction refused it")]
    Caller {
        /// What its driver said.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// There is no such job, or no more.
    #[error("there is no job {0}")]
    NoJob(JobId),
    /// The job is in a state in which this cannot be done.
    #[error("job {id} is {state}: {verb} is not possible")]
    WrongState {
        /// Which job.
        id: JobId,
        /// What it is.
        state: State,
        /// What was wanted.
        verb: Verb,
    },
    /// A worker cannot be made so; every fault is listed.
    #[error("the worker cannot start: {}", .0.join("; "))]
    Worker(Vec<String>),
    /// The jobs are closing.
    #[error("the jobs are closing")]
    Closed,
}
