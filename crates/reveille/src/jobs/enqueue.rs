//! From a producer to rows that are committed.
//!
//! Owns the batcher of enqueues, and the ways into a caller's own transaction. Promises that jobs
//! are durable when the answer comes, and that waiting workers are woken; that a transaction of the
//! caller's that is rolled back leaves no job and wakes no worker; and that one bad job fails
//! alone.
//!
//! Next: [`super::ready`].

mod columns;
mod copy;
mod foreign;

use std::sync::Arc;
use std::time::Duration;

use super::Jobs;
use super::context::JobsContext;
use super::error::JobsError;
use super::event::JobEvent;
use super::id::JobId;
use super::new_job::NewJob;
use super::statements::{ENQUEUE, ENQUEUE_CAREFULLY};
use crate::batcher::{Batcher, Failed, Work};
use crate::database::{Connection, DatabaseError};
use columns::Columns;

/// The result of enqueueing a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Enqueued {
    /// Its id, or that of the existing job.
    pub id: JobId,
    /// Whether a job with the same unique key existed, and this one was dropped.
    pub existing: bool,
}

impl Jobs {
    /// Enqueue a job. When this returns, it is durable and its queue is woken.
    pub async fn enqueue(&self, job: NewJob) -> Result<Enqueued, JobsError> {
        self.enqueue_many(vec![job]).await.pop().unwrap_or(Err(JobsError::Closed))
    }

    /// Enqueue jobs; each has its own answer, in their order. Jobs of many callers are written
    /// together.
    pub async fn enqueue_many(&self, jobs: Vec<NewJob>) -> Vec<Result<Enqueued, JobsError>> {
        let context = &self.parts.context;
        let limit = context.options.args_bytes_max;
        let checked: Vec<Result<(), JobsError>> = jobs.iter().map(|job| job.check(limit)).collect();
        let good: Vec<NewJob> =
            jobs.into_iter().zip(&checked).filter(|(_, checked)| checked.is_ok()).map(|(job, _)| job).collect();
        if good.is_empty() || context.service.end().is_cancelled() {
            return checked.into_iter().map(|checked| checked.and(Err(JobsError::Closed))).collect();
        }
        let mut answers = self.parts.enqueuer.send(good).await.into_iter();
        context.notifier.flush_if_alone().await;
        let mut answer = |()| answers.next().unwrap_or(Err(DatabaseError::Closed)).map_err(refused);
        checked.into_iter().map(|checked| checked.and_then(&mut answer)).collect()
    }
}

/// Values that the database refused, in its own words; other errors unchanged.
pub(super) fn refused(error: DatabaseError) -> JobsError {
    match &error {
        DatabaseError::Data { cause, .. } if cause.sqlstate() == Some("23505") => {
            JobsError::Duplicate(cause.to_string())
        }
        DatabaseError::Data { cause, .. } => JobsError::Refused(cause.to_string()),
        DatabaseError::Closed => JobsError::Closed,
        _ => JobsError::Database(error),
    }
}

/// The batcher's work: write, then wake.
#[derive(Debug)]
pub(super) struct Enqueue {
    context: Arc<JobsContext>,
}

pub(super) type Enqueuer = Batcher<Enqueue>;

pub(super) fn enqueuer(context: &Arc<JobsContext>) -> Enqueuer {
    context.batcher("enqueue", 4096, 4, Enqueue { context: Arc::clone(context) })
}

impl Work for Enqueue {
    type Item = NewJob;
    type Answer = Enqueued;
    type Error = DatabaseError;

    fn weight(job: &NewJob) -> usize {
        job.weight()
    }

    /// After a lost answer it is unknown whether the jobs exist; a second try might write them
    /// twice.
    fn may_repeat(error: &DatabaseError) -> bool {
        matches!(
            error,
            DatabaseError::Unreachable { .. } | DatabaseError::ReadOnly { .. } | DatabaseError::Transient { .. }
        )
    }

    async fn run(&self, connection: &mut Connection, jobs: Vec<NewJob>) -> Result<Vec<Enqueued>, Failed<NewJob>> {
        match self.write(connection, &jobs).await {
            Ok(added) => Ok(added),
            Err(error) => Err((error, jobs)),
        }
    }
}

impl Enqueue {
    async fn write(&self, connection: &Connection, jobs: &[NewJob]) -> Result<Vec<Enqueued>, DatabaseError> {
        let columns = Columns::of(jobs);
        let rows = if jobs.iter().any(|job| job.unique.is_some()) {
            connection.query(&ENQUEUE_CAREFULLY, &columns.careful(&false)).await?
        } else {
            connection.query(&ENQUEUE, &columns.plain()).await?
        };
        let existing = |row: &tokio_postgres::Row| row.try_get("existing").unwrap_or(false);
        let added: Vec<Enqueued> =
            rows.iter().map(|row| Enqueued { id: JobId(row.get("id")), existing: existing(row) }).collect();
        self.wake(jobs);
        Ok(added)
    }

    /// Wakes each queue once, for the job that is due first in it.
    fn wake(&self, jobs: &[NewJob]) {
        let mut queues: Vec<(&str, Duration, usize)> = Vec::new();
        for job in jobs {
            // The claim round reads the due time of a job with a `run_at`, and of one that a
            // conflict has changed.
            let delay = job.delay.unwrap_or(Duration::ZERO);
            match queues.iter_mut().find(|(queue, ..)| *queue == job.queue) {
                Some((_, soonest, count)) => (*soonest, *count) = (delay.min(*soonest), *count + 1),
                None => queues.push((&job.queue, delay, 1)),
            }
        }
        for (queue, delay, count) in queues {
            self.context.notifier.ready_after(queue, delay);
            self.context.reporter.emit(&JobEvent::Enqueued { queue: queue.to_owned(), count });
        }
    }
}
