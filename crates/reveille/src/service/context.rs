//! What the parts of a service share: the database, the tasks, and the order in which they end.
//!
//! Owns every task of a service. Promises that [`close`](Context::close) returns when all of them
//! have ended: first the tasks that wait and claim, then the batchers that finish their requests,
//! when no task is left that can send them one.
//!
//! Next: [`super::notifier`].

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::batcher::{AtEnd, Batcher, BatcherOptions, Post, Work};
use crate::database::Database;

/// What the parts of one service share.
#[derive(Debug)]
pub struct Context {
    database: Database,
    tasks: TaskTracker,
    end: CancellationToken,
    batchers: TaskTracker,
    batchers_end: CancellationToken,
    serves: AtomicBool,
}

impl Context {
    /// For a service on this database.
    pub fn new(database: &Database) -> Self {
        Self {
            database: database.clone(),
            tasks: TaskTracker::new(),
            end: CancellationToken::new(),
            batchers: TaskTracker::new(),
            batchers_end: CancellationToken::new(),
            serves: AtomicBool::new(false),
        }
    }

    /// The database of the service.
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// Runs a task that [`close`](Self::close) waits for. It must end soon after the
    /// [end](Self::end).
    pub fn spawn<F>(&self, task: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.tasks.spawn(task)
    }

    /// Cancelled when the service closes, or when the last of its users is gone.
    pub fn end(&self) -> &CancellationToken {
        &self.end
    }

    /// Note that this process consumes. It lives on, so nothing has to wait until a hint is sent.
    pub fn serve(&self) {
        self.serves.store(true, Ordering::Relaxed);
    }

    /// Whether this process consumes.
    pub fn serves(&self) -> bool {
        self.serves.load(Ordering::Relaxed)
    }

    /// A batcher of the service. One that finishes its requests ends after all tasks that may send
    /// some.
    pub(crate) fn batcher<W: Work>(&self, name: &'static str, options: BatcherOptions, work: W) -> Batcher<W> {
        let (tasks, end) = match options.at_end {
            AtEnd::Refuse => (&self.tasks, &self.end),
            AtEnd::Finish => (&self.batchers, &self.batchers_end),
        };
        let post = Post { name, database: self.database.clone(), tasks: tasks.clone(), end: end.clone() };
        Batcher::new(post, options, work)
    }

    /// Ends in order, and returns when every task has ended. The database stays open.
    pub async fn close(&self) {
        self.end.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        self.batchers_end.cancel();
        self.batchers.close();
        self.batchers.wait().await;
    }

    /// Ends all tasks without waiting for them: the last user of the service is gone.
    pub fn abandon(&self) {
        self.end.cancel();
        self.batchers_end.cancel();
    }
}
