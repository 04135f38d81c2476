//! A claim on its way to a worker.
//!
//! Owns the sign by which a drain knows that one is under way: it lives from before the claim is
//! sent until its jobs are in the worker's hands or given back. Taken before the worker is asked
//! how many jobs it wants, so that a drain either is seen then or sees it.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::task::task_tracker::TaskTrackerToken;

use super::WorkerShared;

/// While one of these lives, a drain of the worker waits.
#[derive(Debug, Clone)]
pub(in crate::jobs) struct Claiming {
    worker_shared: Arc<WorkerShared>,
    _under_way: TaskTrackerToken,
}

impl Claiming {
    pub(in crate::jobs) fn of(worker_shared: &Arc<WorkerShared>) -> Self {
        Self { worker_shared: Arc::clone(worker_shared), _under_way: worker_shared.claims.token() }
    }

    pub(in crate::jobs) fn worker(&self) -> &str {
        &self.worker_shared.name
    }

    pub(in crate::jobs) fn lease(&self) -> Duration {
        self.worker_shared.lease
    }

    /// A job of it was given back. That of a worker which drains counts as released by the drain.
    pub(in crate::jobs) fn given_back(&self) {
        if self.worker_shared.claims.is_closed() {
            self.worker_shared.count_released();
        }
    }
}
