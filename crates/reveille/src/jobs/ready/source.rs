//! The queues that workers of this process wait for, and the workers themselves.
//!
//! Owns the hub of the jobs; [`crate::service::claims`] registers it with listener and heartbeat. A
//! hint names a queue, or a worker that is to check the jobs it holds, because one of them is to be
//! cancelled.
//!
//! Next: [`crate::jobs::claim`].

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reveille_wake::{Cause, DueSource, Hub, HubOptions, Runner};
use tokio::sync::Notify;
use tokio_postgres::types::Type;

use crate::database::Database;
use crate::jobs::event::{JobEvent, Reporter};
use crate::jobs::options::JobsOptions;
use crate::node::{Column, Hint, Survey, WorkSource};

/// The name of jobs in hints.
const SOURCE: &str = "jobs";
/// The statement by which the heartbeat finds ready and coming jobs.
const SURVEY: Survey = Survey::new(include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/sql/jobs/claim/survey.sql")));

/// A queue, as the key that workers wait for.
pub(in crate::jobs) type Queue = Arc<str>;

/// The hint of the jobs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::jobs) enum About {
    /// Jobs of a queue may be claimable.
    Queue(Queue),
    /// A worker is to check the jobs it holds.
    Worker(Arc<str>),
}

impl Hint for About {
    fn to_text(&self) -> String {
        match self {
            Self::Queue(queue) => queue.to_string(),
            Self::Worker(worker) => format!("@{worker}"),
        }
    }

    fn from_text(text: &str) -> Option<Self> {
        Some(match text.strip_prefix('@') {
            Some(worker) => Self::Worker(worker.into()),
            None => Self::Queue(text.into()),
        })
    }
}

pub(in crate::jobs) struct JobSource {
    hub: Hub<Queue>,
    survey: Survey,
    reporter: Arc<Reporter>,
    /// The workers of this process.
    workers: Mutex<HashMap<Arc<str>, Arc<Notify>>>,
}

impl JobSource {
    pub(super) fn new(database: &Database, options: &JobsOptions, reporter: &Arc<Reporter>) -> (Self, Runner<Queue>) {
        let limits = HubOptions::default();
        let limits = match &options.wake_observer {
            Some(observer) => limits.observer(Arc::clone(observer)),
            None => limits,
        };
        let (hub, runner) = Hub::new(limits);
        let survey = SURVEY.in_schema(database.schema());
        (Self { hub, survey, reporter: Arc::clone(reporter), workers: Mutex::default() }, runner)
    }

    pub(super) fn enlist(&self, worker: &Arc<str>, attend: &Arc<Notify>) {
        self.workers().insert(Arc::clone(worker), Arc::clone(attend));
    }

    pub(super) fn dismiss(&self, worker: &str) {
        self.workers().remove(worker);
    }

    fn workers(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<Notify>>> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WorkSource for JobSource {
    type Key = Queue;
    type Hint = About;

    fn name(&self) -> &str {
        SOURCE
    }

    fn hub(&self) -> &Hub<Queue> {
        &self.hub
    }

    fn survey(&self) -> &Survey {
        &self.survey
    }

    fn columns(&self, queues: &[Queue]) -> Vec<Column> {
        let names: Vec<String> = queues.iter().map(ToString::to_string).collect();
        vec![Column::new("queues", Type::TEXT_ARRAY, names)]
    }

    fn wake(&self, hint: Option<&About>, cause: Cause) {
        if cause == Cause::Notified {
            self.reporter.emit(&JobEvent::Notified);
        }
        match hint {
            None => self.hub.wake_all(cause),
            Some(About::Queue(queue)) => self.hub.wake(queue, cause),
            Some(about @ About::Worker(worker)) => {
                if let Some(attend) = self.workers().get(worker) {
                    attend.notify_one();
                }
                // In a notification this may be the name of a queue as well.
                self.hub.wake(&about.to_text().into(), cause);
            }
        }
    }

    fn wake_after(&self, hint: &About, delay: Duration) {
        let queue = match hint {
            About::Queue(queue) => Arc::clone(queue),
            About::Worker(_) => hint.to_text().into(),
        };
        self.hub.wake_after(queue, DueSource::Announced, delay);
    }
}

impl std::fmt::Debug for JobSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JobSource").field("hub", &self.hub).finish_non_exhaustive()
    }
}
