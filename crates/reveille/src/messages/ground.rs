//! What every part of the queues stands on: database, options, names, bell, and the tasks that must end with them.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::bell::Bell;
use super::catalog::Catalog;
use super::options::MessagesOptions;
use super::seal::Seal;
use crate::batcher::{Lane, LaneOptions, Post, Work};
use crate::database::Database;

#[derive(Debug)]
pub(super) struct Ground {
    pub(super) database: Database,
    pub(super) options: MessagesOptions,
    pub(super) catalog: Catalog,
    pub(super) bell: Arc<Bell>,
    pub(super) seal: Seal,
    pub(super) tally: Tally,
    pub(super) tasks: TaskTracker,
    /// Cancelled when the queues close, or when the last of their users is gone.
    pub(super) end: CancellationToken,
}

/// What happened by itself since these queues were opened, without anybody being told of it in an answer.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Messages that claims sent to the dead letters.
    pub(super) buried: AtomicU64,
    /// Groups that had not been told of a message.
    pub(super) repairs: AtomicU64,
}

impl Ground {
    pub(super) fn new(database: Database, options: MessagesOptions) -> Self {
        let bell = Arc::new(Bell::new(&database, &options));
        Self {
            catalog: Catalog::default(),
            bell,
            seal: Seal::new(&options.key_ring),
            tally: Tally::default(),
            tasks: TaskTracker::new(),
            end: CancellationToken::new(),
            database,
            options,
        }
    }

    /// A lane of the queues, which ends with them.
    pub(super) fn lane<W: Work>(&self, name: &'static str, work: W) -> Lane<W> {
        self.lane_with(name, LaneOptions::default(), work)
    }

    /// The same with other limits than the usual ones.
    pub(super) fn lane_with<W: Work>(&self, name: &'static str, options: LaneOptions, work: W) -> Lane<W> {
        let (database, tasks, end) = (self.database.clone(), self.tasks.clone(), self.end.clone());
        Lane::new(Post { name, database, tasks, end }, options, work)
    }
}
