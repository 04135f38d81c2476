//! A batcher sends the requests of many callers as one statement.
//!
//! Owns a queue of requests and one connection. Promises natural batches: requests that arrive
//! while a batch is in flight form the next one, so no batch waits to fill and no timer runs.
//! Promises also that one bad item fails alone, and that a lost connection is replaced and its
//! batch tried again. Refuses requests that come after the end and, unless [`AtEnd::Finish`] is
//! chosen, those that wait at the end; a caller with more than there is room for waits. Knows no
//! statement of its users: see [`Work`].
//!
//! Next: `task`, which gathers and runs the batches; then `messages::push`, `jobs::enqueue` and the
//! two `settle`, which say what a batch does.

mod counts;
mod statements;
mod task;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::database::{Connection, Database, DatabaseError};
pub use counts::BatcherFigures;
use counts::Counts;
pub(crate) use statements::ALL as STATEMENTS;
pub(crate) use task::interrupts;
use task::{BatcherTask, Request};

/// What a batcher does with a batch.
pub(crate) trait Work: Send + Sync + 'static {
    /// One thing to do.
    type Item: Send + 'static;
    /// The result of an item.
    type Answer: Send + 'static;
    /// What callers get for an item that was not done.
    type Error: From<Undone> + Send + 'static;

    /// About how many bytes an item takes on its way.
    fn weight(item: &Self::Item) -> usize;

    /// Whether another attempt, soon, is safe and worth it. A statement that ran into a limit would
    /// only do so again.
    fn may_repeat(error: &DatabaseError) -> bool {
        let passing = matches!(
            error,
            DatabaseError::Unreachable { .. }
                | DatabaseError::ReadOnly { .. }
                | DatabaseError::Transient { .. }
                | DatabaseError::NotCommitted { .. }
        );
        passing || interrupts(error)
    }

    /// Do all items, and answer in their order. After an error the items come back and are tried
    /// again, some of them or all, when that may help. An attempt that was interrupted notes this
    /// in its items, so that the next attempt finds out what took effect.
    fn run(
        &self,
        connection: &mut Connection,
        items: Vec<Self::Item>,
    ) -> impl Future<Output = Result<Vec<Self::Answer>, Failed<Self::Item>>> + Send;
}

/// Why a batch was not done, and the batch.
pub(crate) type Failed<Item> = (DatabaseError, Vec<Item>);

/// Why an item was not done.
#[derive(Debug, Clone)]
pub(crate) enum Undone {
    /// It came after the end.
    Ended,
    /// The database did not do it, or did not say so.
    Failed(DatabaseError),
}

impl From<Undone> for DatabaseError {
    fn from(undone: Undone) -> Self {
        match undone {
            Undone::Ended => Self::Closed,
            Undone::Failed(error) => error,
        }
    }
}

/// Limits and order of batches.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatcherOptions {
    /// Items in a batch.
    pub(crate) items_max: usize,
    /// Bytes in a batch, unless its first item alone has more.
    pub(crate) bytes_max: usize,
    /// Bytes of all items that wait or are in flight. A caller with more waits before the queue.
    pub(crate) room: usize,
    /// How often a batch is tried.
    pub(crate) attempts: u32,
    /// Whether items that follow a failed one fail too, because their order is promised.
    pub(crate) in_order: bool,
    /// What happens to requests that wait at the end.
    pub(crate) at_end: AtEnd,
}

impl Default for BatcherOptions {
    fn default() -> Self {
        Self {
            items_max: 4096,
            bytes_max: 8 * 1024 * 1024,
            room: 64 * 1024 * 1024,
            attempts: 4,
            in_order: true,
            at_end: AtEnd::Refuse,
        }
    }
}

/// What happens to requests that wait at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AtEnd {
    /// They are refused, and nothing is tried again.
    Refuse,
    /// They are done, as before the end.
    Finish,
}

/// The name of a batcher, its database, and what ends it.
#[derive(Debug, Clone)]
pub(crate) struct Post {
    /// What the operator sees in `pg_stat_activity`.
    pub(crate) name: &'static str,
    pub(crate) database: Database,
    pub(crate) tasks: TaskTracker,
    pub(crate) end: CancellationToken,
}

/// Requests in the queue; further callers wait before it.
const REQUESTS_MAX: usize = 4096;
/// Room is counted in pieces of this many bytes.
const PIECE: usize = 1024;

/// Takes requests. Its task starts with the first one, and ends when its post says so.
pub(crate) struct Batcher<W: Work> {
    post: Post,
    requests: mpsc::Sender<Request<W>>,
    room: Arc<Semaphore>,
    pieces: usize,
    task: Mutex<Option<BatcherTask<W>>>,
    counts: Arc<Counts>,
}

impl<W: Work> Batcher<W> {
    pub(crate) fn new(post: Post, options: BatcherOptions, work: W) -> Self {
        let (requests, received) = mpsc::channel(REQUESTS_MAX);
        let pieces = options.room.div_ceil(PIECE).max(1);
        let counts = Arc::new(Counts::default());
        let task = BatcherTask::new(post.clone(), options, work, received, Arc::clone(&counts));
        Self { post, requests, room: Arc::new(Semaphore::new(pieces)), pieces, task: Mutex::new(Some(task)), counts }
    }

    /// What this batcher has done so far.
    pub(crate) fn figures(&self) -> BatcherFigures {
        self.counts.read(self.post.name)
    }

    /// Queue the items, and wait for the result of each. Once queued, they are done also when the
    /// caller goes away.
    pub(crate) async fn send(&self, items: Vec<W::Item>) -> Vec<Result<W::Answer, W::Error>> {
        let count = items.len();
        let ended = || std::iter::repeat_with(|| Err(Undone::Ended.into())).take(count).collect();
        if count == 0 {
            return Vec::new();
        }
        let weight: usize = items.iter().map(W::weight).sum();
        let pieces = weight.div_ceil(PIECE).clamp(1, self.pieces);
        let Ok(room) = Arc::clone(&self.room).acquire_many_owned(u32::try_from(pieces).unwrap_or(u32::MAX)).await
        else {
            return ended();
        };
        self.start();
        let (answer, answered) = oneshot::channel();
        if self.requests.send(Request { items, weight, answer, room }).await.is_err() {
            return ended();
        }
        answered.await.unwrap_or_else(|_| ended())
    }

    fn start(&self) {
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = task {
            self.post.tasks.spawn(task.serve());
        }
    }
}

impl<W: Work> fmt::Debug for Batcher<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batcher").field("name", &self.post.name).finish_non_exhaustive()
    }
}
