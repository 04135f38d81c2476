//! What every part of the jobs shares: database, options, announcements, events, and the tasks that
//! end with them.

use std::sync::Arc;

use reveille_wake::Runner;

use super::bell::{Bell, Queue};
use super::event::Reporter;
use super::options::JobsOptions;
use crate::batcher::{AtEnd, Lane, LaneOptions, Work};
use crate::database::Database;
use crate::service::Context;

#[derive(Debug)]
pub(super) struct Ground {
    pub(super) database: Database,
    pub(super) context: Arc<Context>,
    pub(super) options: JobsOptions,
    pub(super) bell: Bell,
    pub(super) reporter: Arc<Reporter>,
}

impl Ground {
    /// And what fires the due times of the hub, for the claims that start it.
    pub(super) fn new(database: &Database, options: JobsOptions) -> (Self, Runner<Queue>) {
        let context = Arc::new(Context::new(database));
        let reporter = Arc::new(Reporter::new(options.observer.clone()));
        let (bell, runner) = Bell::new(&context, &options, &reporter);
        (Self { database: database.clone(), context, options, bell, reporter }, runner)
    }

    /// A batcher of the jobs. What was asked for before the end is done; jobs have no order that a
    /// failed one would break.
    pub(super) fn batcher<W: Work>(&self, name: &'static str, items_max: usize, attempts: u32, work: W) -> Lane<W> {
        let options =
            LaneOptions { items_max, attempts, in_order: false, at_end: AtEnd::Finish, ..LaneOptions::default() };
        self.context.batcher(name, options, work)
    }
}
