//! The worker: handlers, slots, and the queues they serve.
//!
//! Owns what runs between a claim and its settlement. Promises that a handler runs in a slot of its
//! own, is asked to stop when it should, and is dropped when its lease is lost; that a panic or a
//! timeout is a failure like any other; that leases are kept while handlers run; and that a drain
//! ends in the time it is given, with every job settled or given back.
//!
//! Next: `state` and `counts` (slots and held jobs), `run` (the loop), `claiming` (claims in
//! flight), `slot` (one attempt), `keeper` (leases).

mod claiming;
mod counts;
mod keeper;
mod run;
mod slot;
mod state;

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
pub(super) use state::WorkerState;

use super::Jobs;
use super::error::JobsError;
use super::handler::{Handler, Hook, handler};
use super::job::Job;
use super::new_job::check_name;
use super::outcome::IntoOutcome;

/// More slots than one process can use.
const SLOTS_MAX: usize = 100_000;
const LEASE_MIN: Duration = Duration::from_millis(100);
const LEASE_MAX: Duration = Duration::from_secs(24 * 3600);
/// A claim that is on its way when a drain begins is answered within milliseconds, whatever the
/// bound.
const CLAIM_WITHIN: Duration = Duration::from_secs(1);
/// As many queues as one demand may name.
const QUEUES_MAX: usize = 200;

/// Makes workers.
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

    /// How many more jobs are claimed ahead, to be at hand when a slot is free: for jobs that take
    /// less time than a claim. They are held, and other workers cannot take them. Default: 0.
    pub fn prefetch(mut self, jobs: usize) -> Self {
        self.prefetch = jobs;
        self
    }

    /// How long a job is held without a renewal; while its handler runs, the worker renews three
    /// times as often. A job whose worker died can be claimed again after this time at most.
    /// Default: 30 s; 100 ms to a day.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// How long a handler that was asked to stop may go on before it is dropped. Default: 5 s.
    pub fn cancel_grace(mut self, grace: Duration) -> Self {
        self.cancel_grace = grace;
        self
    }

    /// When a job whose kind has no handler here may be claimed again, by this worker or another.
    /// The attempt does not count. Default: 30 s.
    pub fn unknown_kind_delay(mut self, delay: Duration) -> Self {
        self.unknown_kind_delay = delay;
        self
    }

    /// The name of the worker in figures, logs and tables; a random suffix is added. Default:
    /// `worker`. Letters, digits, `_`, `.` and `-`, at most 40.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The handler for jobs of a kind, whose arguments are read as `A`. It returns nothing, an
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

    /// A hook that watches attempts. Default: none.
    pub fn hook(mut self, hook: impl Hook) -> Self {
        self.hooks.push(Box::new(hook));
        self
    }

    /// Begin to work. Reports every fault at once.
    pub async fn start(mut self) -> Result<RunningWorker, JobsError> {
        if self.queues.is_empty() {
            self.queues.push((super::new_job::DEFAULT_QUEUE.to_owned(), 1));
        }
        let faults = self.faults();
        if !faults.is_empty() {
            return Err(JobsError::Worker(faults));
        }
        // Here, so that a schema that is too old is reported once and not by every claim round.
        self.jobs.parts.context.database.check_schema().await?;
        let name: Arc<str> =
            format!("{}-{:012x}", self.name.as_deref().unwrap_or("worker"), fastrand::u64(..) >> 16).into();
        let jobs = self.jobs.clone();
        let tracker = TaskTracker::new();
        let worker = Arc::new(WorkerState::new(self, name));
        let stop = Stop::default();
        let (ended, running) = watch::channel(false);
        let parts = Arc::clone(&jobs.parts);
        parts.context.service.spawn(run::run(
            Arc::clone(&parts),
            Arc::clone(&worker),
            stop.clone(),
            tracker.clone(),
            ended,
        ));
        Ok(RunningWorker { jobs, worker, stop, tracker, running })
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
        unless(!shortest.is_zero(), "the shortest pause between polls must be more than 0 ms");
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
    /// Handlers are asked to stop.
    handlers: CancellationToken,
    /// Handlers are dropped, and their jobs given back.
    now: CancellationToken,
}

/// A worker at work. Dropped without a [`drain`](Self::drain), it stops at once and leaves its jobs
/// to the end of their leases.
#[derive(Debug)]
pub struct RunningWorker {
    jobs: Jobs,
    worker: Arc<WorkerState>,
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
    /// Its name in figures, logs and tables.
    pub fn name(&self) -> &str {
        &self.worker.name
    }

    /// How many handlers run.
    pub fn busy(&self) -> usize {
        self.worker.counts.running.get()
    }

    /// Take no more jobs; let those that run come to their end, for at most `bound`. When a fifth
    /// of it is left their handlers are asked to stop ([`Job::cancelled`]); handlers that still run
    /// at its end are dropped, and their jobs given back, so that other workers run them at once.
    /// Jobs of a claim in flight are given back too: no job is leased to this worker any more when
    /// this returns, unless the database has not answered that claim within the bound, or a second
    /// if that is longer.
    pub async fn drain(mut self, bound: Duration) -> Drained {
        let (began, running) = (Instant::now(), self.worker.counts.running.get());
        self.worker.claims.close();
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
        // An error means that the task, which has the sender, has ended.
        let _ = self.running.wait_for(|ended| *ended).await;
        let left = bound.max(CLAIM_WITHIN).saturating_sub(began.elapsed());
        if tokio::time::timeout(left, self.worker.claims.wait()).await.is_err() {
            warn!(
                worker = &*self.worker.name,
                "drained, but a claim is still unanswered: its jobs are given back later, or their leases end"
            );
        }
        self.jobs.parts.context.notifier.flush().await;
        let counts = &self.worker.counts;
        Drained { finished: running.saturating_sub(counts.dropped.get()), released: counts.released.get() }
    }
}

impl Drop for RunningWorker {
    fn drop(&mut self) {
        self.tracker.close();
        self.worker.abandon();
        self.stop.claims.cancel();
        self.stop.now.cancel();
    }
}
