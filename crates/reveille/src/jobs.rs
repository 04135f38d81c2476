//! Jobs: work that is enqueued in a transaction, begins within milliseconds of its commit, and runs
//! until it is done, or dead.
//!
//! Owns everything between an enqueue and a job's end. Promises that a job exists exactly if the
//! transaction that enqueued it was committed; that it is run at least once, and leased to one
//! worker at a time; that a worker which lost its lease records nothing; and that everything that
//! makes a job claimable wakes a worker, except where notifications are off, and except SQL on a
//! quiet queue. Idle workers cost the heartbeat and nothing else.
//!
//! The path: [`enqueue`](Jobs::enqueue) → commit → `ready` (wake-up and hint) → `claim` (claim
//! round) → [`Worker`] → `settle`.

mod backoff;
mod context;
mod error;
mod event;
mod figures;
mod id;
mod lifecycle;
mod new_job;
mod options;
mod outcome;
mod statements;
mod unique;

mod enqueue;

mod ready;

mod claim;

mod handler;
mod job;
mod worker;

mod settle;

mod admin;
mod inspect;
mod upkeep;

pub use admin::{Cancelled, Redrive};
pub use backoff::Backoff;
pub use enqueue::Enqueued;
pub use error::JobsError;
pub use event::{About, JobEvent};
pub use figures::{JobsFigures, Kind};
pub use handler::Hook;
pub use id::{JobId, JobToken};
pub use inspect::{DeadJob, Explanation, JobFailure, QueueState};
pub use job::Job;
pub use lifecycle::{State, TRANSITIONS, Transition, Verb, lifecycle_page};
pub use new_job::NewJob;
pub use options::{JobObserver, JobsOptions};
pub use outcome::{Failure, IntoOutcome, Outcome};
pub use settle::Settled;
pub use unique::{Conflict, Unique};
pub use worker::{Drained, RunningWorker, Worker, WorkerBuilder};

use std::sync::Arc;

use crate::database::Database;
use claim::Claimer;
use context::JobsContext;
use enqueue::Enqueuer;
use settle::Settler;

pub(crate) use statements::ALL as STATEMENTS;

/// The jobs of one database. Clones share everything.
#[derive(Debug, Clone)]
pub struct Jobs {
    parts: Arc<Parts>,
}

#[derive(Debug)]
struct Parts {
    context: Arc<JobsContext>,
    enqueuer: Enqueuer,
    settler: Arc<Settler>,
    claimer: Claimer,
}

impl Jobs {
    /// On a database whose schema is up to date. Opens no connection yet: each part opens its own
    /// with its first work.
    pub fn open(database: &Database, options: JobsOptions) -> Self {
        let (context, runner) = JobsContext::new(database, options);
        let context = Arc::new(context);
        let enqueuer = enqueue::enqueuer(&context);
        let settler = Arc::new(Settler::new(&context));
        let claimer = Claimer::new(&context, &settler, runner);
        Self { parts: Arc::new(Parts { context, enqueuer, settler, claimer }) }
    }

    /// The database these jobs are in.
    pub fn database(&self) -> &Database {
        &self.parts.context.database
    }

    /// What happened to jobs in this process.
    pub fn figures(&self) -> JobsFigures {
        self.parts.context.reporter.figures.read(self.database().hint_channel())
    }

    /// Ends in order: workers that were not drained stop at once and give back the jobs they hold;
    /// requests that were made are finished, and their hints sent to the other processes. The
    /// database stays open.
    pub async fn close(&self) {
        let context = &self.parts.context;
        context.service.close().await;
        context.notifier.flush().await;
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        self.context.service.abandon();
    }
}
