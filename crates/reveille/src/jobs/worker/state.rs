//! What the parts of a worker share: its settings, its slots, and the jobs it holds.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::WorkerBuilder;
use crate::jobs::handler::{Handler, Hook};
use crate::jobs::job::Held;
use crate::jobs::ready::Queue;

/// How many attempts may have ended without being recorded yet, beyond the slots: a slow disk may
/// hold up this many.
const UNRECORDED_MAX: usize = 2048;

pub(in crate::jobs) struct WorkerState {
    pub(in crate::jobs) name: Arc<str>,
    pub(in crate::jobs) lease: Duration,
    pub(super) queues: Vec<(Queue, u32)>,
    pub(super) cancel_grace: Duration,
    pub(super) unknown_kind_delay: Duration,
    pub(super) handlers: HashMap<String, Handler>,
    pub(super) hooks: Vec<Box<dyn Hook>>,
    pub(super) slots: Arc<Semaphore>,
    room: usize,
    /// Jobs that were claimed and whose handler has not ended.
    busy: AtomicUsize,
    /// Jobs whose handler runs.
    working: AtomicUsize,
    /// Jobs that were claimed and whose end is not recorded.
    open: AtomicUsize,
    released: AtomicUsize,
    dropped: AtomicUsize,
    abandoned: AtomicBool,
    pub(super) freed: Notify,
    /// Notified when one of the held jobs is to be cancelled.
    pub(super) attend: Arc<Notify>,
    /// Claims in flight; closed when the worker takes no more jobs.
    pub(super) claims: TaskTracker,
    held: Mutex<HashMap<Claim, Holding>>,
}

/// Job and epoch: a worker that lost a job may claim it again while its first handler still runs.
pub(super) type Claim = (i64, i32);

pub(super) fn claim_of(job: &Held) -> Claim {
    (job.token.id.0, job.token.epoch)
}

/// A job that is held, and when its lease was last renewed.
pub(super) struct Holding {
    pub(super) job: Arc<Held>,
    pub(super) renewed: Instant,
}

impl WorkerState {
    pub(super) fn new(builder: WorkerBuilder, name: Arc<str>) -> Self {
        Self {
            name,
            lease: builder.lease,
            queues: builder.queues.into_iter().map(|(queue, weight)| (Arc::from(queue), weight)).collect(),
            cancel_grace: builder.cancel_grace,
            unknown_kind_delay: builder.unknown_kind_delay,
            handlers: builder.handlers,
            hooks: builder.hooks,
            slots: Arc::new(Semaphore::new(builder.slots)),
            room: builder.slots + builder.prefetch,
            busy: AtomicUsize::new(0),
            working: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
            released: AtomicUsize::new(0),
            dropped: AtomicUsize::new(0),
            abandoned: AtomicBool::new(false),
            freed: Notify::new(),
            attend: Arc::new(Notify::new()),
            claims: TaskTracker::new(),
            held: Mutex::default(),
        }
    }

    /// How many jobs the worker could take now; none once it drains.
    pub(in crate::jobs) fn want(&self) -> usize {
        if self.claims.is_closed() {
            return 0;
        }
        let free = self.room.saturating_sub(self.busy.load(Ordering::Relaxed));
        let recorded = (self.room + UNRECORDED_MAX).saturating_sub(self.open.load(Ordering::Relaxed));
        free.min(recorded)
    }

    pub(in crate::jobs) fn weight(&self, queue: &str) -> u32 {
        self.queues.iter().find(|(name, _)| **name == *queue).map_or(1, |(_, weight)| *weight)
    }

    /// Notes that jobs were claimed.
    pub(super) fn took(&self, jobs: usize) {
        self.busy.fetch_add(jobs, Ordering::Relaxed);
        self.open.fetch_add(jobs, Ordering::Relaxed);
    }

    pub(super) fn hold(&self, job: &Arc<Held>, since: Instant) {
        let holding = Holding { job: Arc::clone(job), renewed: since };
        self.held().insert(claim_of(job), holding);
    }

    pub(super) fn begin(&self) {
        self.working.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that a handler ended: its slot is free, though this is not recorded yet.
    pub(super) fn end(&self) {
        self.working.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn free(&self) {
        self.busy.fetch_sub(1, Ordering::Relaxed);
        self.freed.notify_one();
    }

    pub(super) fn let_go(&self, job: &Held) {
        self.held().remove(&claim_of(job));
        self.open.fetch_sub(1, Ordering::Relaxed);
        self.freed.notify_one();
    }

    pub(super) fn count_released(&self) {
        self.released.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_dropped(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn released(&self) -> usize {
        self.released.load(Ordering::Relaxed)
    }

    pub(super) fn dropped(&self) -> usize {
        self.dropped.load(Ordering::Relaxed)
    }

    pub(super) fn working(&self) -> usize {
        self.working.load(Ordering::Relaxed)
    }

    /// The worker was dropped without a drain: the jobs it holds are not given back.
    pub(super) fn abandon(&self) {
        self.abandoned.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed)
    }

    pub(super) fn held(&self) -> MutexGuard<'_, HashMap<Claim, Holding>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for WorkerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerState").field("name", &self.name).field("busy", &self.busy).finish_non_exhaustive()
    }
}
