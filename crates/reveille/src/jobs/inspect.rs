//! Read-only views of jobs, each bounded.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio_postgres::Row;

use super::Jobs;
use super::error::JobsError;
use super::id::JobId;
use super::lifecycle::State;
use super::statements::{DEAD, DEPTHS, ERRORS, EXPLAIN, QUEUES};

/// Rows that one statement counts, of each queue or of all.
const COUNTED_MAX: i64 = 100_000;
const PAGE_MAX: i64 = 1000;

/// Everything that is known of a job, and why it is not moving.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Explanation {
    /// Which job.
    pub id: JobId,
    /// Its kind.
    pub kind: String,
    /// Its queue.
    pub queue: String,
    /// Its priority, 0 first.
    pub priority: i16,
    /// What it is.
    pub state: State,
    /// Attempts made.
    pub attempt: i16,
    /// Attempts it may have.
    pub max_attempts: i16,
    /// How long ago it was enqueued.
    pub age: Duration,
    /// The worker that holds it, or held it last.
    pub worker: Option<String>,
    /// The progress that its handler last noted, as JSON.
    pub progress: Option<Vec<u8>>,
    /// Its result, as JSON.
    pub result: Option<Vec<u8>>,
    /// Its arguments, as JSON.
    pub args: Vec<u8>,
    /// Its tags.
    pub tags: Vec<String>,
    /// Its metadata, as JSON.
    pub metadata: Option<Vec<u8>>,
    /// Whether its queue is paused.
    pub paused: bool,
    /// What went wrong, the earliest first; the last twenty attempts.
    pub errors: Vec<JobFailure>,
    /// A sentence that says why it is in this state.
    pub because: String,
}

/// An attempt that failed.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct JobFailure {
    /// Which attempt.
    pub attempt: i16,
    /// Why, in a word.
    pub code: String,
    /// Why, in a sentence.
    pub message: String,
    /// The worker that made it.
    pub worker: Option<String>,
    /// How long ago.
    pub ago: Duration,
}

/// A dead job.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct DeadJob {
    /// Which job.
    pub id: JobId,
    /// Its kind.
    pub kind: String,
    /// Its queue.
    pub queue: String,
    /// Attempts made.
    pub attempt: i16,
    /// Why it is dead, in a word.
    pub code: String,
    /// Why, in a sentence.
    pub reason: String,
    /// How long ago it died.
    pub ago: Duration,
    /// Its arguments, as JSON.
    pub args: Vec<u8>,
}

/// What a queue holds. Counts end at a hundred thousand.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct QueueState {
    /// Its name.
    pub name: String,
    /// Jobs whose time has not come.
    pub scheduled: u64,
    /// Jobs that are due, with those whose lease has ended.
    pub ready: u64,
    /// Jobs that are held, under a lease that has not ended.
    pub running: u64,
    /// How long the oldest due job has been due; a job whose worker was lost is due since the end
    /// of its lease.
    pub age: Option<Duration>,
    /// Whether it is paused.
    pub paused: bool,
    /// Whether it is quiet.
    pub quiet: bool,
}

impl Jobs {
    /// Everything known about a job; `None` for one that never existed, or was forgotten.
    pub async fn explain(&self, id: JobId) -> Result<Option<Explanation>, JobsError> {
        let Some(row) = self.change(&EXPLAIN, &[&id.0]).await?.into_iter().next() else { return Ok(None) };
        let errors = self.change(&ERRORS, &[&id.0]).await?.iter().map(failure).collect();
        // A job that is deleted between the two statements is shown as the first one read it,
        // without errors.
        let state = State::parse(row.get("state")).unwrap_or(State::Done);
        Ok(Some(Explanation {
            id,
            kind: row.get("kind"),
            queue: row.get("queue"),
            priority: row.get("priority"),
            state,
            attempt: row.get::<_, Option<i16>>("attempt").unwrap_or(0),
            max_attempts: row.get("max_attempts"),
            age: seconds(row.get("age_s")),
            worker: row.get("worker"),
            progress: row.get("progress"),
            result: row.get("result"),
            args: row.get("args"),
            tags: row.get::<_, Option<Vec<String>>>("tags").unwrap_or_default(),
            metadata: row.get("metadata"),
            paused: row.get("paused"),
            errors,
            because: because(&row, state),
        }))
    }

    /// Dead jobs after one of them, or from the first, of a queue or of all; at most a thousand at
    /// a time.
    pub async fn dead(
        &self,
        queue: Option<&str>,
        after: Option<JobId>,
        limit: usize,
    ) -> Result<Vec<DeadJob>, JobsError> {
        let limit = i64::try_from(limit).unwrap_or(PAGE_MAX).min(PAGE_MAX);
        let rows = self.change(&DEAD, &[&queue, &after.map_or(0, |id| id.0), &limit]).await?;
        let dead = |row: &Row| DeadJob {
            id: JobId(row.get("id")),
            kind: row.get("kind"),
            queue: row.get("queue"),
            attempt: row.get("attempt"),
            code: row.get("code"),
            reason: row.get("reason"),
            ago: seconds(row.get("ago_s")),
            args: row.get("args"),
        };
        Ok(rows.iter().map(dead).collect())
    }

    /// Every queue that holds jobs, or has settings.
    pub async fn queues(&self) -> Result<Vec<QueueState>, JobsError> {
        let rows = self.change(&QUEUES, &[&COUNTED_MAX]).await?;
        let state = |row: &Row| QueueState {
            name: row.get("queue"),
            scheduled: count(row.get("waiting")),
            ready: count(row.get("ready")),
            running: count(row.get("running")),
            age: row.get::<_, Option<f64>>("oldest_s").map(seconds),
            paused: row.get("paused"),
            quiet: row.get("quiet"),
        };
        Ok(rows.iter().map(state).collect())
    }

    /// How many jobs of each kind have not ended, among the first hundred thousand: the gauge
    /// `job_queue_depth`.
    pub async fn depths(&self) -> Result<BTreeMap<String, u64>, JobsError> {
        let rows = self.change(&DEPTHS, &[&COUNTED_MAX]).await?;
        Ok(rows.iter().map(|row| (row.get("kind"), count(row.get("depth")))).collect())
    }
}

fn because(row: &Row, state: State) -> String {
    let due = row.get::<_, Option<f64>>("due_s").unwrap_or(0.0);
    let (note, reason): (Option<&str>, Option<&str>) = (row.get("note"), row.get("reason"));
    let worker = row.get::<_, Option<&str>>("worker");
    let paused = row.get::<_, bool>("paused");
    let attempt = row.get::<_, Option<i16>>("attempt").unwrap_or(0);
    match state {
        State::Scheduled => match note {
            Some(note) => format!("it was put off: {note}; it is due in {due:.1} s"),
            None if attempt > 0 => format!("attempt {attempt} failed; the next is due in {due:.1} s"),
            None => format!("its time comes in {due:.1} s"),
        },
        State::Ready if paused => "its queue is paused".to_owned(),
        State::Ready => match worker {
            Some(lost) => {
                format!("{lost} held it and is silent: its lease ended {:.1} s ago, any worker may take it", -due)
            }
            None => format!("it has been due for {:.1} s and waits for a worker with a free slot", -due),
        },
        State::Running => {
            let worker = worker.unwrap_or("a worker");
            if row.get("cancel_requested") {
                format!("{worker} runs it and was asked to stop")
            } else {
                format!("{worker} runs it; its lease ends in {due:.1} s unless it is renewed")
            }
        }
        State::Done => "it succeeded".to_owned(),
        State::Cancelled => reason.unwrap_or("it was cancelled").to_owned(),
        State::Dead => {
            let code = row.get::<_, Option<&str>>("code").unwrap_or("failed");
            let attempts = if attempt == 1 { "1 attempt".to_owned() } else { format!("{attempt} attempts") };
            format!("it failed for good after {attempts}: {code}: {}", reason.unwrap_or(""))
        }
    }
}

fn failure(row: &Row) -> JobFailure {
    JobFailure {
        attempt: row.get("attempt"),
        code: row.get("code"),
        message: row.get("message"),
        worker: row.get("worker"),
        ago: seconds(row.get("ago_s")),
    }
}

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds.clamp(0.0, 1e12))
}

fn count(count: i64) -> u64 {
    count.unsigned_abs()
}
