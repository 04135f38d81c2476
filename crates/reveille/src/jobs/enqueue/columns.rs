//! Jobs as arrays, one for each column.

use std::time::{Duration, SystemTime};

use crate::database::Param;
use crate::jobs::new_job::NewJob;

#[derive(Debug)]
pub(super) struct Columns<'j> {
    pub(super) kinds: Vec<&'j str>,
    pub(super) args: Vec<&'j [u8]>,
    pub(super) queues: Vec<&'j str>,
    priorities: Vec<i16>,
    pub(super) wide_priorities: Vec<i32>,
    run_ats: Vec<Option<SystemTime>>,
    /// The same in seconds since 1970: sqlx has no type for a time without a crate for it.
    pub(super) epochs: Vec<Option<f64>>,
    pub(super) delays: Vec<Option<f64>>,
    attempts: Vec<i16>,
    pub(super) wide_attempts: Vec<i32>,
    timeouts_ms: Vec<Option<i64>>,
    pub(super) timeouts: Vec<Option<f64>>,
    pub(super) backoffs: Vec<Option<&'j str>>,
    pub(super) tags: Vec<Option<String>>,
    pub(super) metadata: Vec<Option<&'j [u8]>>,
    pub(super) scopes: Vec<Option<&'j str>>,
    pub(super) keys: Vec<Option<&'j str>>,
    pub(super) windows: Vec<Option<f64>>,
    pub(super) conflicts: Vec<Option<&'static str>>,
}

impl<'j> Columns<'j> {
    pub(super) fn of(jobs: &'j [NewJob]) -> Self {
        fn column<'j, T>(jobs: &'j [NewJob], value: impl Fn(&'j NewJob) -> T) -> Vec<T> {
            jobs.iter().map(value).collect()
        }
        let unique = |job: &'j NewJob| job.unique.as_ref();
        Self {
            kinds: column(jobs, |job| &*job.kind),
            args: column(jobs, |job| &*job.args),
            queues: column(jobs, |job| &*job.queue),
            priorities: column(jobs, |job| job.priority),
            wide_priorities: column(jobs, |job| job.priority.into()),
            run_ats: column(jobs, NewJob::due_at),
            epochs: column(jobs, |job| job.due_at().map(epoch)),
            delays: column(jobs, |job| job.delay.map(|delay| delay.as_secs_f64())),
            attempts: column(jobs, |job| job.max_attempts),
            wide_attempts: column(jobs, |job| job.max_attempts.into()),
            timeouts_ms: column(jobs, |job| job.timeout.map(milliseconds)),
            timeouts: column(jobs, |job| job.timeout.map(|timeout| timeout.as_secs_f64().max(0.001))),
            backoffs: column(jobs, |job| job.backoff.text()),
            tags: column(jobs, |job| (!job.tags.is_empty()).then(|| job.tags.join("\n"))),
            metadata: column(jobs, |job| job.metadata.as_deref()),
            scopes: column(jobs, |job| unique(job).map(|unique| &*unique.scope)),
            keys: column(jobs, |job| unique(job).and_then(|unique| unique.key.as_deref())),
            windows: column(jobs, |job| unique(job).and_then(|unique| unique.window).map(|time| time.as_secs_f64())),
            conflicts: column(jobs, |job| unique(job).map(|unique| unique.conflict.as_str())),
        }
    }

    /// For jobs of which none is unique.
    pub(super) fn plain(&self) -> [Param<'_>; 11] {
        [
            &self.kinds,
            &self.args,
            &self.queues,
            &self.priorities,
            &self.run_ats,
            &self.delays,
            &self.attempts,
            &self.timeouts_ms,
            &self.backoffs,
            &self.tags,
            &self.metadata,
        ]
    }

    /// For any, with a notification in the transaction or without.
    pub(super) fn careful<'p>(&'p self, notify: &'p bool) -> [Param<'p>; 16] {
        [
            &self.kinds,
            &self.args,
            &self.queues,
            &self.wide_priorities,
            &self.epochs,
            &self.delays,
            &self.wide_attempts,
            &self.timeouts,
            &self.backoffs,
            &self.tags,
            &self.metadata,
            &self.scopes,
            &self.keys,
            &self.windows,
            &self.conflicts,
            notify,
        ]
    }
}

/// Rounded up: a timeout of less than a millisecond is not none.
pub(super) fn milliseconds(time: Duration) -> i64 {
    i64::try_from(time.as_micros().div_ceil(1000)).unwrap_or(i64::MAX)
}

fn epoch(at: SystemTime) -> f64 {
    match at.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => after.as_secs_f64(),
        Err(before) => -before.duration().as_secs_f64(),
    }
}
