//! What the parts of a worker share: its settings, its slots, and the jobs it holds.
//!
//! Owns how much room there is for more jobs, and which jobs are held. Promises that a slot whose
//! handler has ended is room for the next job at once, as long as the ends of not too many others
//! wait to be recorded.
//!
//! Next: `counts` (the steps of a job, in numbers), then `run`.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::WorkerBuilder;
use super::counts::Counts;
use crate::jobs::handler::{Handler, Hook};
use crate::jobs::job::Held;
use crate::jobs::ready::Queue;

/// How many attempts may have ended without being recorded yet, beyond the slots: a slow disk may
/// hold up this many.
const UNRECORDED_MAX: usize = 2048;

/// One worker, from its start to the end of its last job.
pub(in crate::jobs) struct WorkerState {
    pub(in crate::jobs) name: Arc<str>,
    pub(in crate::jobs) lease: Duration,
    /// With their weights.
    pub(super) queues: Vec<(Queue, u32)>,
    pub(super) cancel_grace: Duration,
    pub(super) unknown_kind_delay: Duration,
    pub(super) handlers: HashMap<String, Handler>,
    pub(super) hooks: Vec<Box<dyn Hook>>,
    pub(super) slots: Arc<Semaphore>,
    /// How many jobs it takes at once: one for each slot, and those that are claimed ahead.
    room: usize,
    pub(super) counts: Counts,
    /// Whether it was dropped without a drain.
    abandoned: AtomicBool,
    /// Notified when there is room for another job.
    pub(super) freed: Notify,
    /// Notified when one of the held jobs is to be cancelled.
    pub(super) attend: Arc<Notify>,
    /// Claims in flight; closed when the worker takes no more jobs.
    pub(super) claims: TaskTracker,
    held: Mutex<HashMap<Claim, Holding>>,
}

/// The id of a job, and the epoch of its claim: a worker that lost a job may claim it again while
/// its first handler still runs.
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
            counts: Counts::default(),
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
        let free = self.room.saturating_sub(self.counts.taking_room.get());
        free.min((self.room + UNRECORDED_MAX).saturating_sub(self.counts.unrecorded.get()))
    }

    /// The weight of a queue that the worker serves.
    pub(in crate::jobs) fn weight(&self, queue: &str) -> u32 {
        self.queues.iter().find(|(name, _)| **name == *queue).map_or(1, |(_, weight)| *weight)
    }

    /// Holds a job whose lease was made or renewed at `since`.
    pub(super) fn hold(&self, job: &Arc<Held>, since: Instant) {
        let holding = Holding { job: Arc::clone(job), renewed: since };
        self.held().insert(claim_of(job), holding);
    }

    /// A job left its slot, though its end is not recorded yet: there is room for another.
    pub(super) fn free_slot(&self) {
        self.counts.leaves_slot();
        self.freed.notify_one();
    }

    /// A job is not held any more: its end is recorded, or is not for this worker to record.
    pub(super) fn let_go(&self, job: &Held) {
        self.held().remove(&claim_of(job));
        self.counts.is_over();
        self.freed.notify_one();
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
        f.debug_struct("WorkerState").field("name", &self.name).field("counts", &self.counts).finish_non_exhaustive()
    }
}
