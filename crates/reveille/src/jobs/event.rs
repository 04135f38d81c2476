//! Everything observable about jobs, emitted once for figures, logs and observers.

use std::sync::Arc;
use std::time::Duration;

use tracing::{info, warn};

use super::figures::Figures;
use super::id::JobId;
use super::lifecycle::State;
use super::options::JobObserver;

/// Something that happened to a job in this process.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum JobEvent {
    /// Jobs were enqueued, and that is committed.
    Enqueued {
        /// Into which queue.
        queue: String,
        /// How many.
        count: usize,
    },
    /// A worker has taken it.
    Claimed {
        /// Which job, and what about it.
        job: About,
        /// By which worker.
        worker: Arc<str>,
        /// How long it had been due.
        waited: Duration,
    },
    /// Its handler begins.
    Started {
        /// Which job.
        job: About,
    },
    /// It is done, and that is recorded.
    Completed {
        /// Which job.
        job: About,
        /// How long its handler took.
        took: Duration,
    },
    /// Its attempt failed, and that is recorded.
    Failed {
        /// Which job.
        job: About,
        /// Why, in a word.
        code: String,
        /// Why, in a sentence.
        message: String,
        /// What it is now: scheduled for another attempt, or dead.
        state: State,
        /// How long its handler took.
        took: Duration,
    },
    /// It was put off, given back, or cancelled; and that is recorded.
    Settled {
        /// Which job.
        job: About,
        /// What it is now.
        state: State,
    },
    /// It ended when it was to be claimed after its last worker was lost: it had no attempt left,
    /// or was to be cancelled.
    Ended {
        /// Which job.
        job: About,
        /// What it is now: dead, or cancelled.
        state: State,
    },
    /// Its lease was lost: another worker has it, or it has ended. The outcome of this worker was
    /// not recorded.
    LeaseLost {
        /// Which job.
        job: About,
    },
    /// A hint arrived from another process.
    Notified,
    /// A claim round was made without a wake-up.
    Polled,
}

/// What events say about a job.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct About {
    /// Its id.
    pub id: JobId,
    /// Its kind.
    pub kind: Arc<str>,
    /// Its queue.
    pub queue: Arc<str>,
    /// Its attempt, from 1.
    pub attempt: i32,
    /// The `item_id` of its metadata.
    pub item_id: Option<Arc<str>>,
}

/// Passes events to the figures, the log and the observer.
pub(super) struct Reporter {
    observer: Option<JobObserver>,
    pub(super) figures: Figures,
}

impl Reporter {
    pub(super) fn new(observer: Option<JobObserver>) -> Self {
        Self { observer, figures: Figures::default() }
    }

    pub(super) fn emit(&self, event: &JobEvent) {
        self.figures.count(event);
        log(event);
        if let Some(observer) = &self.observer {
            observer(event);
        }
    }
}

impl std::fmt::Debug for Reporter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reporter").finish_non_exhaustive()
    }
}

/// The names of events and fields are those that dashboards search for.
fn log(event: &JobEvent) {
    match event {
        JobEvent::Claimed { job, worker, .. } => info!(
            event = "job_claimed",
            job_id = job.id.0,
            kind = &*job.kind,
            queue = &*job.queue,
            item_id = job.item_id.as_deref(),
            attempt = job.attempt,
            worker_id = &**worker,
            "job_claimed"
        ),
        JobEvent::Completed { job, took } => info!(
            event = "job_completed",
            job_id = job.id.0,
            kind = &*job.kind,
            queue = &*job.queue,
            item_id = job.item_id.as_deref(),
            duration_ms = took.as_secs_f64() * 1000.0,
            "job_completed"
        ),
        JobEvent::Failed { job, code, message, state, .. } => warn!(
            event = "job_failed",
            job_id = job.id.0,
            kind = &*job.kind,
            queue = &*job.queue,
            item_id = job.item_id.as_deref(),
            error_code = code,
            error_message = message,
            will_retry = *state == State::Scheduled,
            "job_failed"
        ),
        JobEvent::Ended { job, state: State::Dead } => warn!(
            event = "job_failed",
            job_id = job.id.0,
            kind = &*job.kind,
            queue = &*job.queue,
            item_id = job.item_id.as_deref(),
            error_code = "lease_expired",
            error_message = "the worker of its last attempt was lost, or held it too long",
            will_retry = false,
            "job_failed"
        ),
        JobEvent::Ended { job, state } => {
            warn!(job_id = job.id.0, %state, "a job whose worker was lost ended as it was claimed");
        }
        JobEvent::LeaseLost { job } => {
            warn!(job_id = job.id.0, attempt = job.attempt, "lost the lease of a job, another worker may have it");
        }
        JobEvent::Enqueued { .. }
        | JobEvent::Started { .. }
        | JobEvent::Settled { .. }
        | JobEvent::Notified
        | JobEvent::Polled => {}
    }
}
