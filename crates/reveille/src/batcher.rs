//! A lane: what many callers ask at once becomes one statement.
//!
//! Owns a queue of requests and one connection. Promises natural batches: what arrives while a
//! batch is in flight forms the next one, so that nobody waits for company and no timer runs; that
//! one bad item fails alone; that a connection which was lost is replaced, and the batch tried
//! again on the new one. Refuses nothing but what comes after the end: whoever asks for more than
//! there is room for waits. Knows no statement of its users: see [`Work`].
//!
//! Next: `task`, the task behind it; then `messages::push`, `jobs::enqueue` and the two `settle`,
//! which say what a batch does.

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

/// What a lane does with a batch.
pub(crate) trait Work: Send + Sync + 'static {
    /// One thing asked for.
    type Item: Send + 'static;
    /// What became of it.
    type Answer: Send + 'static;
    /// What its callers hear when it was not done.
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

    /// Do all of it, and answer in the order of the items. After an error the items come back and
    /// are tried again, some of them or all, when that may help: whoever was interrupted must then
    /// find out what took effect, and notes in the items that there is something to find out.
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

/// How much at once, and what follows what.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatcherOptions {
    /// Items in a batch.
    pub(crate) items_max: usize,
    /// Bytes in a batch, unless its first item alone has more.
    pub(crate) bytes_max: usize,
    /// Bytes of everything that waits or is in flight: who brings more waits outside.
    pub(crate) room: usize,
    /// How often a batch is tried.
    pub(crate) attempts: u32,
    /// Whether what comes after something that was not done is not done either, because its order
    /// is promised.
    pub(crate) in_order: bool,
    /// What becomes of requests that the end finds waiting.
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

/// What becomes of requests that the end finds waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AtEnd {
    /// They are refused, and nothing is tried again.
    Refuse,
    /// They are done, as before the end.
    Finish,
}

/// Where a lane stands: its name, its database, and with whom it ends.
#[derive(Debug, Clone)]
pub(crate) struct Post {
    /// What the operator sees in `pg_stat_activity`.
    pub(crate) name: &'static str,
    pub(crate) database: Database,
    pub(crate) tasks: TaskTracker,
    pub(crate) end: CancellationToken,
}

/// Requests that may wait inside; the rest waits at the door, without having been looked at.
const REQUESTS_MAX: usize = 4096;
/// Room is counted in pieces of this many bytes.
const PIECE: usize = 1024;

/// The way in. Its task starts with the first request, and ends with its post.
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

    /// What it has done so far.
    pub(crate) fn figures(&self) -> BatcherFigures {
        self.counts.read(self.post.name)
    }

    /// Have these done, and wait for what became of each. A caller that goes away leaves its items
    /// to their course.
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
        f.debug_struct("Lane").field("name", &self.post.name).finish_non_exhaustive()
    }
}
