//! What people do to jobs: cancel, hasten, bring back, forget, pause.
//!
//! Each verb is one statement that names the states it accepts; a refusal names the state that the
//! job is in. Everything that makes a job claimable wakes its queue.

use super::Jobs;
use super::error::JobsError;
use super::id::JobId;
use super::lifecycle::Verb;
use super::new_job::check_name;
use super::statements::{CANCEL, DELETE, REDRIVE, REPRIORITISE, RETRY_NOW, SWITCH};
use crate::database::{DatabaseError, Param, Statement};
use tokio_postgres::Row;

/// Dead jobs brought back by one statement.
const REDRIVEN_MAX: i64 = 1000;

/// What a cancellation did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancelled {
    /// The job waited, and is cancelled.
    Now,
    /// The job runs; its handler is asked to stop.
    Requested,
}

/// Which dead jobs to bring back. Default: all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use = "it is redriven by `Jobs::redrive`"]
pub struct Redrive {
    ids: Option<Vec<i64>>,
    queue: Option<String>,
    kind: Option<String>,
    code: Option<String>,
}

impl Redrive {
    /// All dead jobs.
    pub fn all() -> Self {
        Self::default()
    }

    /// One dead job.
    pub fn one(id: JobId) -> Self {
        Self { ids: Some(vec![id.0]), ..Self::default() }
    }

    /// Only those of a queue. Default: of any.
    pub fn queue(mut self, queue: impl Into<String>) -> Self {
        self.queue = Some(queue.into());
        self
    }

    /// Only those of a kind. Default: of any.
    pub fn kind(mut self, kind: impl Into<String>) -> Self {
        self.kind = Some(kind.into());
        self
    }

    /// Only those that ended with this error code. Default: with any.
    pub fn code(mut self, code: impl Into<String>) -> Self {
        self.code = Some(code.into());
        self
    }
}

impl Jobs {
    /// Cancel a job: at once when it waits; when it runs, its handler is asked to stop, and dropped
    /// if it does not.
    pub async fn cancel(&self, id: JobId) -> Result<Cancelled, JobsError> {
        let keep = self.parts.context.options.keep_done.as_secs_f64();
        let Some(row) = self.change(&CANCEL, &[&id.0, &keep]).await?.into_iter().next() else {
            return Err(self.not_so(id, Verb::Cancel).await);
        };
        if row.get::<_, &str>("said") == "cancelled" {
            return Ok(Cancelled::Now);
        }
        if let Some(worker) = row.get::<_, Option<&str>>("worker") {
            self.parts.context.notifier.attend(worker);
            self.parts.context.notifier.flush_if_alone().await;
        }
        Ok(Cancelled::Requested)
    }

    /// Let a scheduled job run now.
    pub async fn retry_now(&self, id: JobId) -> Result<(), JobsError> {
        let rows = self.change(&RETRY_NOW, &[&id.0]).await?;
        self.changed(id, Verb::RetryNow, &rows).await
    }

    /// Give a job that waits another priority.
    pub async fn reprioritise(&self, id: JobId, priority: i16) -> Result<(), JobsError> {
        if !(0..=9).contains(&priority) {
            return Err(JobsError::Refused(format!("the priority must be 0 to 9, not {priority}")));
        }
        let rows = self.change(&REPRIORITISE, &[&id.0, &priority]).await?;
        self.changed(id, Verb::Reprioritise, &rows).await
    }

    /// Make dead jobs ready again, with all their attempts before them. Returns their ids; a chosen
    /// job that is not dead is not among them. A unique key that they had does not keep other jobs
    /// out again.
    pub async fn redrive(&self, which: Redrive) -> Result<Vec<JobId>, JobsError> {
        let mut redriven = Vec::new();
        loop {
            let params: [Param<'_>; 5] = [&which.ids, &which.queue, &which.kind, &which.code, &REDRIVEN_MAX];
            let rows = self.change(&REDRIVE, &params).await?;
            let mut queues: Vec<&str> = rows.iter().map(|row| row.get("queue")).collect();
            queues.sort_unstable();
            queues.dedup();
            for queue in queues {
                self.parts.context.notifier.ready(queue);
            }
            redriven.extend(rows.iter().map(|row| JobId(row.get("id"))));
            if rows.len() < usize::try_from(REDRIVEN_MAX).unwrap_or(usize::MAX) {
                break;
            }
        }
        self.parts.context.notifier.flush_if_alone().await;
        Ok(redriven)
    }

    /// Forget a job that does not run.
    pub async fn delete(&self, id: JobId) -> Result<(), JobsError> {
        if self.change(&DELETE, &[&id.0]).await?.is_empty() {
            return Err(self.not_so(id, Verb::Delete).await);
        }
        Ok(())
    }

    /// Stop claims from a queue; jobs that run go on.
    pub async fn pause(&self, queue: &str) -> Result<(), JobsError> {
        self.switch(queue, Some(true), None).await
    }

    /// End a pause.
    pub async fn resume(&self, queue: &str) -> Result<(), JobsError> {
        self.switch(queue, Some(false), None).await
    }

    /// Whether SQL functions on jobs of this queue (`enqueue`, `fail`, `snooze`), and enqueueing in
    /// a caller's transaction, do without a notification, which is dear where thousands of
    /// transactions commit in a second. Workers then poll the queue every
    /// [`fallback_interval`](super::JobsOptions::fallback_interval).
    pub async fn quiet(&self, queue: &str, quiet: bool) -> Result<(), JobsError> {
        self.switch(queue, None, Some(quiet)).await
    }

    async fn switch(&self, queue: &str, paused: Option<bool>, quiet: Option<bool>) -> Result<(), JobsError> {
        check_name("the queue's name", queue)?;
        self.change(&SWITCH, &[&queue, &paused, &quiet]).await?;
        // The next claim round reads what has changed.
        self.parts.context.notifier.ready(queue);
        self.parts.context.notifier.flush_if_alone().await;
        Ok(())
    }

    async fn changed(&self, id: JobId, verb: Verb, rows: &[Row]) -> Result<(), JobsError> {
        let Some(row) = rows.first() else { return Err(self.not_so(id, verb).await) };
        self.parts.context.notifier.ready(row.get("queue"));
        self.parts.context.notifier.flush_if_alone().await;
        Ok(())
    }

    pub(super) async fn change(&self, statement: &Statement, params: &[Param<'_>]) -> Result<Vec<Row>, DatabaseError> {
        self.database().administer().await?.query(statement, params).await
    }

    /// Why the job could not be changed.
    async fn not_so(&self, id: JobId, verb: Verb) -> JobsError {
        match self.explain(id).await {
            Ok(Some(job)) => JobsError::WrongState { id, state: job.state, verb },
            Ok(None) => JobsError::NoJob(id),
            Err(error) => error,
        }
    }
}
