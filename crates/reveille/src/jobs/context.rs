//! What every part of the jobs shares: database, options, announcements, events, and the tasks that
//! end with them.

use std::sync::Arc;

use reveille_wake::Runner;

use super::event::Reporter;
use super::options::JobsOptions;
use super::ready::{JobNotifier, Queue};
use crate::batcher::{AtEnd, Batcher, BatcherOptions, Work};
use crate::database::Database;
use crate::service::Context;

#[derive(Debug)]
pub(super) struct JobsContext {
    pub(super) database: Database,
    pub(super) service: Arc<Context>,
    pub(super) options: JobsOptions,
    pub(super) notifier: JobNotifier,
    pub(super) reporter: Arc<Reporter>,
}

impl JobsContext {
    /// Also returns the runner of the hub's due times, for the claims that start it.
    pub(super) fn new(database: &Database, options: JobsOptions) -> (Self, Runner<Queue>) {
        let service = Arc::new(Context::new(database));
        let reporter = Arc::new(Reporter::new(options.observer.clone()));
        let (notifier, runner) = JobNotifier::new(&service, &options, &reporter);
        (Self { database: database.clone(), service, options, notifier, reporter }, runner)
    }

    /// A batcher of the jobs. It does requests that were made before the end; jobs have no order
    /// that a failed one would break.
    pub(super) fn batcher<W: Work>(&self, name: &'static str, items_max: usize, attempts: u32, work: W) -> Batcher<W> {
        let options =
            BatcherOptions { items_max, attempts, in_order: false, at_end: AtEnd::Finish, ..BatcherOptions::default() };
        self.service.batcher(name, options, work)
    }
}
