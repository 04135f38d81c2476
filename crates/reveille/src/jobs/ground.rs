//! What every part of the jobs stands on: database, options, bell, events, and the tasks that must end with them.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::bell::Bell;
use super::event::Reporter;
use super::options::JobsOptions;
use crate::batcher::{AtEnd, Lane, LaneOptions, Post, Work};
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

    /// A lane of the jobs. What was asked for before the end is done; jobs have no order that one which failed would break.
    pub(super) fn lane<W: Work>(&self, name: &'static str, items_max: usize, attempts: u32, work: W) -> Lane<W> {
        let (database, tasks, end) = (self.database.clone(), self.lanes.clone(), self.lanes_end.clone());
        let options =
            LaneOptions { items_max, attempts, in_order: false, at_end: AtEnd::Finish, ..LaneOptions::default() };
        Lane::new(Post { name, database, tasks, end }, options, work)
    }

    /// Wake whoever waits in other processes before we may be gone.
    pub(super) async fn flush_if_alone(&self) {
        if !self.bell.serves() {
            self.bell.flush().await;
        }
    }
}
