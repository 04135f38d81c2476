//! The worker: handlers, slots, and the queues they serve.
//!
//! Owns what runs between a claim and its settlement. Promises that a handler runs in a slot of its
//! own, is told when it should stop, and is dropped when its job is somebody else's; that a panic
//! or a timeout is a failure like any other; that leases are kept while handlers run; and that a
//! drain ends in the time it is given, with everything settled or given back.
//!
//! Next: `worker_shared` (who is busy), `run` (the loop), `claiming` (what is on its way), `slot` (one
//! attempt), `keeper` (leases).

mod claiming;
mod keeper;
mod run;
mod shared;
mod slot;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::warn;

pub(super) use claiming::Claiming;
pub(super) use shared::WorkerShared;

use super::Jobs;
use super::error::JobsError;
use super::handler::{Handler, Hook, handler};
use super::job::Job;
use super::new_job::check_name;
use super::outcome::IntoOutcome;

/// More than this, and one process is not the place.
const SLOTS_MAX: usize = 100_000;
const LEASE_MIN: Duration = Duration::from_millis(100);
const LEASE_MAX: Duration = Duration::from_secs(24 * 3600);
/// A claim that is on its way when a drain begins is answered within milliseconds, whatever the
/// bound.
const CLAIM_WITHIN: Duration = Duration::from_secs(1);
/// As many as one demand may name.
const QUEUES_MAX: usize = 200;

/// Where workers come from.
#[derive(Debug)]
pub struct Worker;

impl Worker {
    /// Describe a worker.
    pub fn builder(jobs: &Jobs) -> WorkerBuilder {
        WorkerBuilder {
            jobs: jobs.clone(),
            name: None,
            queues: Vec::new(),
            slots: 64,
            prefetch: 0,
            lease: Duration::from_secs(30),
            cancel_grace: Duration::from_secs(5),
            unknown_kind_delay: Duration::from_secs(30),
            handlers: HashMap::new(),
            hooks: Vec::new(),
            faults: Vec::new(),
        }
    }
}

/// A worker that does not run yet.
#[must_use = "it does nothing until it is started"]
pub struct WorkerBuilder {
    jobs: Jobs,
    name: Option<String>,
    queues: Vec<(String, u32)>,
    slots: usize,
    prefetch: usize,
    lease: Duration,
    cancel_grace: Duration,
    unknown_kind_delay: Duration,
    handlers: HashMap<String, Handler>,
    hooks: Vec<Box<dyn Hook>>,
    faults: Vec<String>,
}

impl WorkerBuilder {
    /// Serve a queue; of queues that have work, each gets slots in proportion to its weight.
    /// Default: `default`, if none is named.
    pub fn queue(mut self, name: impl Into<String>, weight: u32) -> Self {
        self.queues.push((name.into(), weight));
        self
    }

    /// How many handlers run at once. Default: 64.
    pub fn slots(mut self, slots: usize) -> Self {
        self.slots = slots;
        self
    }

    /// How many jobs more are claimed ahead, to be at hand when a slot is free: for jobs that are
    /// over in less time than it takes to ask for the next. They are held, and other workers cannot
    /// take them. Default: 0.
    pub fn prefetch(mut self, jobs: usize) -> Self {
        self.prefetch = jobs;
        self
    }

    /// For how long a job is held without a sign of life; while its handler runs, the worker gives
    /// one three times as often. So long it takes at most until a job whose worker died runs again.
    /// Default: 30 s; 100 ms to a day.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// How long a handler that was told to stop may go on before it is dropped. Default: 5 s.
    pub fn cancel_grace(mut self, grace: Duration) -> Self {
        self.cancel_grace = grace;
        self
    }

    /// When a job whose kind no handler here knows may be claimed again, by this worker or a newer
    /// one. It is not charged. Default: 30 s.
    pub fn unknown_kind_delay(mut self, delay: Duration) -> Self {
        self.unknown_kind_delay = delay;
        self
    }

    /// What the worker is called in figures, logs and tables, followed by something of its own.
    /// Default: `worker`. Letters, digits, `_`, `.` and `-`, at most 40.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Who does jobs of a kind, whose arguments are read as `A`. The handler returns nothing, an
    /// [`Outcome`](super::Outcome), or a `Result` of either.
    pub fn handler<A, Fut>(
        mut self,
        kind: impl Into<String>,
        work: impl Fn(A, Job) -> Fut + Send + Sync + 'static,
    ) -> Self
    where
        A: DeserializeOwned + Send + 'static,
        Fut: Future + Send + 'static,
        Fut::Output: IntoOutcome,
    {
        let kind = kind.into();
        if self.handlers.contains_key(&kind) {
            self.faults.push(format!("the kind \"{kind}\" has two handlers"));
        }
        self.handlers.insert(kind, handler(work));
        self
    }

    /// Who watches attempts. Default: nobody.
    pub fn hook(mut self, hook: impl Hook) -> Self {
        self.hooks.push(Box::new(hook));
        self
    }

    /// Begin to work. Says every fault at once.
    pub async fn start(mut self) -> Result<RunningWorker, JobsError> {
        if self.queues.is_empty() {
            self.queues.push((super::new_job::DEFAULT_QUEUE.to_owned(), 1));
        }
        let faults = self.faults();
        if !faults.is_empty() {
            return Err(JobsError::Worker(faults));
        }
        // A schema that is too old is told here and not by every look.
        self.jobs.parts.context.database.check_schema().await?;
        let name: Arc<str> =
            format!("{}-{:012x}", self.name.as_deref().unwrap_or("worker"), fastrand::u64(..) >> 16).into();
        let jobs = self.jobs.clone();
        let tracker = TaskTracker::new();
        let worker_shared = Arc::new(WorkerShared::new(self, name));
        let stop = Stop::default();
        let (ended, running) = watch::channel(false);
        let parts = Arc::clone(&jobs.parts);
        parts.context.service.spawn(run::run(
            Arc::clone(&parts),
            Arc::clone(&worker_shared),
            stop.clone(),
            tracker.clone(),
            ended,
        ));
        Ok(RunningWorker { jobs, worker_shared, stop, tracker, running })
    }

    fn faults(&self) -> Vec<String> {
        let mut faults = self.faults.clone();
        let mut unless = |holds: bool, fault: &str| {
            if !holds {
                faults.push(fault.to_owned());
            }
        };
        unless((1..=SLOTS_MAX).contains(&self.slots), "a worker has 1 to 100000 slots");
        unless(self.prefetch <= SLOTS_MAX, "a worker claims at most 100000 jobs ahead");
        unless((LEASE_MIN..=LEASE_MAX).contains(&self.lease), "a lease lasts 100 ms to a day");
        let shortest = self.jobs.parts.context.options.poll_mode.shortest;
        unless(!shortest.is_zero(), "the shortest pause between looks must be more than 0 ms");
        unless(!self.handlers.is_empty(), "there is no handler");
        unless(self.queues.len() <= QUEUES_MAX, "a worker serves at most 200 queues");
        unless(self.queues.iter().all(|(_, weight)| (1..=1_000_000).contains(weight)), "a weight is 1 to 1000000");
        let mut names: Vec<&str> = self.queues.iter().map(|(name, _)| &**name).collect();
        names.sort_unstable();
        names.dedup();
        unless(names.len() == self.queues.len(), "a queue is named twice");
        let is_plain = |name: &String| {
            !name.is_empty() && name.len() <= 40 && name.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c))
        };
        unless(self.name.as_ref().is_none_or(is_plain), "a worker's name has 1 to 40 letters, digits, _, . and -");
        let queues = self.queues.iter().map(|(name, _)| check_name("the queue's name", name));
        let kinds = self.handlers.keys().map(|kind| check_name("the handler's kind", kind));
        faults.extend(queues.chain(kinds).filter_map(|checked| checked.err().map(|error| error.to_string())));
        faults
    }
}

impl std::fmt::Debug for WorkerBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkerBuilder")
            .field("queues", &self.queues)
            .field("slots", &self.slots)
            .finish_non_exhaustive()
    }
}

/// The steps of an end.
#[derive(Debug, Clone, Default)]
struct Stop {
    /// No more claims.
    claims: CancellationToken,
    /// Handlers are told to stop.
    handlers: CancellationToken,
    /// Handlers are dropped, and their jobs given back.
    now: CancellationToken,
}

/// A worker at work. Dropped without a [`drain`](Self::drain), it stops at once and leaves its jobs
/// to the end of their leases.
#[derive(Debug)]
pub struct RunningWorker {
    jobs: Jobs,
    worker_shared: Arc<WorkerShared>,
    stop: Stop,
    tracker: TaskTracker,
    running: watch::Receiver<bool>,
}

/// How a drain ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Drained {
    /// Jobs that were running and came to their own end.
    pub finished: usize,
    /// Jobs that were given back for others to run: those not yet begun, and those whose time was
    /// up.
    pub released: usize,
}

impl RunningWorker {
    /// What it is called in figures, logs and tables.
    pub fn name(&self) -> &str {
        &self.worker_shared.name
    }

    /// How many handlers run.
    pub fn busy(&self) -> usize {
        self.worker_shared.working()
    }

    /// Take no more jobs; let those that run come to their end, for at most `bound`. When a fifth
    /// of it is left they are told to stop ([`Job::cancelled`]); what still runs at its end is
    /// dropped and given back unharmed, so that others run it at once. What a claim in flight still
    /// brings is given back too: nothing is leased to this worker any more when this returns,
    /// unless the database has not answered that claim within the bound, or a second if that is
    /// longer.
    pub async fn drain(mut self, bound: Duration) -> Drained {
        let (began, held) = (Instant::now(), self.worker_shared.working());
        self.worker_shared.claims.close();
        self.stop.claims.cancel();
        self.tracker.close();
        let tracker = self.tracker.clone();
        if tokio::time::timeout(bound.mul_f64(0.8), tracker.wait()).await.is_err() {
            self.stop.handlers.cancel();
            if tokio::time::timeout(bound.mul_f64(0.2), tracker.wait()).await.is_err() {
                self.stop.now.cancel();
            }
        }
        tracker.wait().await;
        // The sender goes with the task.
        let _ = self.running.wait_for(|ended| *ended).await;
        let left = bound.max(CLAIM_WITHIN).saturating_sub(began.elapsed());
        if tokio::time::timeout(left, self.worker_shared.claims.wait()).await.is_err() {
            warn!(
                worker = &*self.worker_shared.name,
                "drained, but a claim is still unanswered: its jobs come back or their leases end"
            );
        }
        self.jobs.parts.context.notifier.flush().await;
        let released = self.worker_shared.released();
        Drained { finished: held.saturating_sub(self.worker_shared.dropped()), released }
    }
}

impl Drop for RunningWorker {
    fn drop(&mut self) {
        self.tracker.close();
        self.worker_shared.abandon();
        self.stop.claims.cancel();
        self.stop.now.cancel();
    }
}
