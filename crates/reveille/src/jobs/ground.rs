//! What every part of the jobs stands on: database, options, bell, events, and the tasks that must end with them.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::bell::Bell;
use super::event::Reporter;
use super::options::JobsOptions;
use crate::database::Database;

#[derive(Debug)]
pub(super) struct Ground {
    pub(super) database: Database,
    pub(super) options: JobsOptions,
    pub(super) bell: Arc<Bell>,
    pub(super) reporter: Arc<Reporter>,
    pub(super) tasks: TaskTracker,
    /// Cancelled when the jobs close, or when the last of their users is gone.
    pub(super) end: CancellationToken,
    /// The lanes end after everything that sends to them.
    pub(super) lanes: TaskTracker,
    pub(super) lanes_end: CancellationToken,
}

impl Ground {
    pub(super) fn new(database: Database, options: JobsOptions) -> Self {
        let reporter = Arc::new(Reporter::new(options.observer.clone()));
        let bell = Arc::new(Bell::new(&database, &options, &reporter));
        Self {
            database,
            options,
            bell,
            reporter,
            tasks: TaskTracker::new(),
            end: CancellationToken::new(),
            lanes: TaskTracker::new(),
            lanes_end: CancellationToken::new(),
        }
    }

    /// Wake whoever waits in other processes before we may be gone.
    pub(super) async fn flush_if_alone(&self) {
        if !self.bell.serves() {
            self.bell.flush().await;
        }
    }
}
