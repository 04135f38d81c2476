//! A claim on its way to a worker.
//!
//! Owns the token by which a drain knows that a claim is in flight: the token lives from before the
//! claim is sent until its jobs are held by the worker or given back. It is taken before the demand
//! of the worker is read: either the demand is zero because of the drain, or the drain waits.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::task::task_tracker::TaskTrackerToken;

use super::WorkerState;

/// While one of these lives, a drain of the worker waits.
#[derive(Debug, Clone)]
pub(in crate::jobs) struct Claiming {
    worker: Arc<WorkerState>,
    _in_flight: TaskTrackerToken,
}

impl Claiming {
    pub(in crate::jobs) fn of(worker: &Arc<WorkerState>) -> Self {
        Self { worker: Arc::clone(worker), _in_flight: worker.claims.token() }
    }

    pub(in crate::jobs) fn worker(&self) -> &str {
        &self.worker.name
    }

    pub(in crate::jobs) fn lease(&self) -> Duration {
        self.worker.lease
    }

    /// A job of this claim was given back. While the worker drains, it counts as released by the
    /// drain.
    pub(in crate::jobs) fn given_back(&self) {
        if self.worker.claims.is_closed() {
            self.worker.counts.released.add(1);
        }
    }
}
