//! Wakes whoever waits for jobs: here at once, elsewhere through the broadcaster.
//!
//! Owns the hub of the queues and its place in listener and heartbeat. A hint names a queue, or `@` and a worker, which is then to
//! look after the jobs it holds: somebody wants one of them cancelled. Everything that can make a job claimable calls a method here
//! after its commit: docs/jobs.md lists them. With notifications off, it neither sends nor hears any: the hub says that there is no
//! source of hints, and workers look every fallback interval.
//!
//! Next: [`super::claim`].

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reveille_wake::{Cause, DueSource, Hub, HubOptions, Link, Runner};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_postgres::types::Type;

use super::event::{JobEvent, Reporter};
use super::options::JobsOptions;
use crate::database::{Broadcaster, Column, Database, Hint, Registration, Survey, WorkSource};

/// The name of jobs in hints.
const SOURCE: &str = "jobs";
/// What the heartbeat asks.
const SURVEY: Survey = Survey::new(include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/sql/jobs/claim/survey.sql")));

/// A queue, as one waits for it.
pub(super) type Queue = Arc<str>;

/// What an announcement is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum About {
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

pub(super) struct Bell {
    hub: Hub<Queue>,
    /// Until the first worker starts it.
    runner: Mutex<Option<Runner<Queue>>>,
    broadcaster: Broadcaster,
    survey: Survey,
    notify: bool,
    reporter: Arc<Reporter>,
    /// The workers of this process.
    workers: Mutex<HashMap<Arc<str>, Arc<Notify>>>,
    /// Until when the end of a lease has been announced, by queue.
    announced: Mutex<HashMap<Queue, Instant>>,
}

impl Bell {
    pub(super) fn new(database: &Database, options: &JobsOptions, reporter: &Arc<Reporter>) -> Self {
        let limits = HubOptions::default();
        let limits = match &options.wake_observer {
            Some(observer) => limits.observer(Arc::clone(observer)),
            None => limits,
        };
        let (hub, runner) = Hub::new(limits);
        Self {
            hub,
            runner: Mutex::new(Some(runner)),
            broadcaster: database.broadcaster(),
            survey: SURVEY.in_schema(database.schema()),
            notify: options.notify,
            reporter: Arc::clone(reporter),
            workers: Mutex::default(),
            announced: Mutex::default(),
        }
    }

    /// Jobs of the queue may be claimable now: enqueued, given back, redriven, resumed, moved to another priority.
    pub(super) fn ready(&self, queue: &str) {
        self.announce(&About::Queue(queue.into()));
    }

    /// A job of the queue will be claimable after `delay`: a schedule, a retry, a snooze.
    pub(super) fn ready_after(&self, queue: &str, delay: Duration) {
        let about = About::Queue(queue.into());
        if delay.is_zero() {
            self.announce(&about);
        } else if self.notify {
            self.broadcaster.announce_after(SOURCE, &about, delay);
        } else {
            self.wake_after(&about, delay);
        }
    }

    fn announce(&self, about: &About) {
        if self.notify {
            self.broadcaster.announce(SOURCE, about, Cause::Pushed);
        } else {
            self.wake(Some(about), Cause::Pushed);
        }
    }

    /// Leases were made that end after `lease`: if their holder dies, others must look then. One announcement at a time is enough
    /// for a queue, because whoever looks then learns of the next end.
    pub(super) fn leased(&self, queue: &Queue, lease: Duration) {
        let now = Instant::now();
        let mut announced = lock(&self.announced);
        if announced.get(queue).is_some_and(|until| *until > now) {
            return;
        }
        if let Some(until) = now.checked_add(lease) {
            announced.insert(Arc::clone(queue), until);
        }
        drop(announced);
        self.ready_after(queue, lease);
    }

    /// A worker is to look after the jobs it holds. Without notifications a worker elsewhere learns of it with its next renewal.
    pub(super) fn attend(&self, worker: &str) {
        self.announce(&About::Worker(worker.into()));
    }

    /// Waits until what was announced has been sent: a program that only enqueues may exit right after.
    pub(super) async fn flush(&self) {
        self.broadcaster.flush().await;
    }

    /// From here on hints and the heartbeat ring this hub; nothing does when notifications are off, for a heartbeat proves its link
    /// by a notification to itself.
    pub(super) fn register(self: &Arc<Self>, database: &Database) -> Option<Registration> {
        if self.notify {
            return Some(database.register(Arc::clone(self)));
        }
        self.hub.set_link(Link::Off);
        None
    }

    /// Whether this process has a worker, and so lives on: its hints can leave when they like.
    pub(super) fn serves(&self) -> bool {
        lock(&self.runner).is_none()
    }

    pub(super) fn hub(&self) -> &Hub<Queue> {
        &self.hub
    }

    /// What rings the hub's dues; `None` once it was taken.
    pub(super) fn take_runner(&self) -> Option<Runner<Queue>> {
        lock(&self.runner).take()
    }

    /// From here on the worker is told when it is to look after its jobs.
    pub(super) fn enlist(&self, worker: &Arc<str>, attend: &Arc<Notify>) {
        lock(&self.workers).insert(Arc::clone(worker), Arc::clone(attend));
    }

    pub(super) fn dismiss(&self, worker: &str) {
        lock(&self.workers).remove(worker);
    }
}

impl WorkSource for Bell {
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
            None => self.hub.ring_all(cause),
            Some(About::Queue(queue)) => self.hub.ring(queue, cause),
            Some(about @ About::Worker(worker)) => {
                if let Some(attend) = lock(&self.workers).get(worker) {
                    attend.notify_one();
                }
                // In a notification it may be the name of a queue as well.
                self.hub.ring(&about.to_text().into(), cause);
            }
        }
    }

    fn wake_after(&self, hint: &About, delay: Duration) {
        let queue = match hint {
            About::Queue(queue) => Arc::clone(queue),
            About::Worker(_) => hint.to_text().into(),
        };
        self.hub.ring_after(queue, DueSource::Announced, delay);
    }
}

impl std::fmt::Debug for Bell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bell").field("hub", &self.hub).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
