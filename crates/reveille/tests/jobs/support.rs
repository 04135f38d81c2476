//! Shared by the tests of jobs: a database with the schema, jobs opened on it, and a list of what
//! happens to them.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use reveille::database::{Database, DatabaseOptions};
use reveille::jobs::{Enqueued, Explanation, Job, JobEvent, JobId, Jobs, JobsOptions, NewJob, Worker, WorkerBuilder};
use reveille_testkit::{Events, TestDatabase};
use reveille_wake::Event;
use serde_json::Value;
use tokio::time::timeout;
use tokio_postgres::Client;

/// No test waits longer than this for anything.
pub(crate) const SOON: Duration = Duration::from_secs(30);
/// So long that nothing in a test is explained by it.
pub(crate) const NEVER: Duration = Duration::from_secs(3600);

/// Fail loudly instead of hanging.
pub(crate) async fn soon<T>(work: impl Future<Output = T>) -> T {
    timeout(SOON, work).await.expect("it took too long")
}

/// One process: jobs, and what happens to them there.
pub(crate) struct Node {
    pub(crate) jobs: Jobs,
    pub(crate) database: Database,
    pub(crate) events: Events<JobEvent>,
}

impl Node {
    pub(crate) async fn at(options: DatabaseOptions, jobs: JobsOptions) -> Self {
        let database = soon(Database::connect(options)).await.expect("connects");
        let events = Events::new();
        let recorded = events.clone();
        let observer = Arc::new(move |event: &JobEvent| recorded.record(event.clone()));
        Self { jobs: Jobs::open(&database, jobs.observer(observer)), database, events }
    }

    /// A worker of all kinds that tests use, on the default queue: `ok` succeeds, `no` fails.
    pub(crate) fn worker(&self) -> WorkerBuilder {
        Worker::builder(&self.jobs)
            .handler::<Value, _>("ok", |_, _: Job| async {})
            .handler::<Value, _>("no", |_, _: Job| async { Err::<(), _>("it cannot") })
    }

    pub(crate) async fn enqueue(&self, job: NewJob) -> JobId {
        soon(self.jobs.enqueue(job)).await.expect("is enqueued").id
    }

    pub(crate) async fn explain(&self, id: JobId) -> Explanation {
        soon(self.jobs.explain(id)).await.expect("is explained").expect("is known")
    }

    pub(crate) async fn completed(&self, id: JobId) {
        self.events.until(|event| matches!(event, JobEvent::Completed { job, .. } if job.id == id)).await;
    }

    /// Waits until an attempt of the job has failed and that is recorded.
    pub(crate) async fn failed(&self, id: JobId, attempt: i32) -> JobEvent {
        let wanted =
            |event: &JobEvent| matches!(event, JobEvent::Failed { job, .. } if job.id == id && job.attempt == attempt);
        self.events.until(wanted).await
    }

    pub(crate) async fn started(&self, id: JobId, attempt: i32) {
        let wanted =
            |event: &JobEvent| matches!(event, JobEvent::Started { job } if job.id == id && job.attempt == attempt);
        self.events.until(wanted).await;
    }

    pub(crate) fn completions(&self) -> Vec<JobId> {
        let completed = |event: JobEvent| match event {
            JobEvent::Completed { job, .. } => Some(job.id),
            _ => None,
        };
        self.events.all().into_iter().filter_map(completed).collect()
    }
}

/// A database of its own, and one process on it.
pub(crate) struct Fixture {
    pub(crate) node: Node,
    /// Dropped last.
    pub(crate) db: TestDatabase,
}

impl std::ops::Deref for Fixture {
    type Target = Node;

    fn deref(&self) -> &Node {
        &self.node
    }
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        Self::with(JobsOptions::default()).await
    }

    /// The heartbeat explains nothing.
    pub(crate) async fn with(options: JobsOptions) -> Self {
        let db = TestDatabase::new().await;
        let node = Node::at(DatabaseOptions::new(db.url()).heartbeat(NEVER), options).await;
        Self { node, db }
    }

    /// Another process on the same database.
    pub(crate) async fn another(&self) -> Node {
        Node::at(DatabaseOptions::new(self.db.url()).heartbeat(NEVER), JobsOptions::default()).await
    }

    pub(crate) async fn client(&self) -> Client {
        self.db.client().await
    }

    /// How many rows a query finds.
    pub(crate) async fn count(&self, from: &str) -> i64 {
        self.client().await.query_one(&format!("select count(*) from {from}"), &[]).await.expect("counts").get(0)
    }

    /// Do something behind the library's back.
    pub(crate) async fn sql(&self, sql: &str) {
        self.client().await.batch_execute(sql).await.expect("is done");
    }
}

/// Waits until a statement with these words, near its beginning, waits for a lock.
pub(crate) async fn until_blocked(watcher: &Client, words: &str) {
    let blocked = "select count(*) from pg_stat_activity
         where datname = current_database() and wait_event_type = 'Lock' and query like '%' || $1 || '%'";
    soon(async { while watcher.query_one(blocked, &[&words]).await.expect("counts").get::<_, i64>(0) == 0 {} }).await;
}

/// Options with which the events of the wake engine are recorded.
pub(crate) fn watched() -> (Events<Event>, JobsOptions) {
    let events = Events::new();
    let recorded = events.clone();
    (events, JobsOptions::default().wake_observer(Arc::new(move |event: &Event| recorded.record(*event))))
}

pub(crate) fn job(kind: &str) -> NewJob {
    NewJob::new(kind, &serde_json::json!({})).expect("is a job")
}

pub(crate) fn all_new(added: Vec<Result<Enqueued, reveille::jobs::JobsError>>) -> Vec<JobId> {
    added.into_iter().map(|added| added.expect("is enqueued").id).collect()
}
