//! A lane: what many callers ask at once becomes one statement.
//!
//! Owns a queue of requests and one connection. Promises natural batches: what arrives while a batch is in flight forms the
//! next one, so that nobody waits for company and no timer runs; that one bad item fails alone; that a connection which was
//! lost is replaced, and the batch tried again on the new one. Refuses nothing but what comes after the end: whoever asks
//! for more than there is room for waits. Knows no SQL: see [`Work`].
//!
//! Next: [`super::push`] and `super::settle`, which say what a batch does.

mod counts;
mod crew;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Semaphore, mpsc, oneshot};

use super::error::MessagesError;
use super::ground::Ground;
use crate::database::{Connection, DatabaseError};
use counts::Counts;
pub use counts::LaneFigures;
use crew::{Crew, Request};

/// What a lane does with a batch.
pub(super) trait Work: Send + Sync + 'static {
    /// One thing asked for.
    type Item: Send + 'static;
    /// What became of it.
    type Answer: Send + 'static;

    /// About how many bytes an item takes on its way.
    fn weight(item: &Self::Item) -> usize;

    /// Do all of it, and answer in the order of the items. After an error the items come back and are tried again, some of
    /// them or all, when that may help: whoever was interrupted must then find out what took effect, and notes in the items
    /// that there is something to find out.
    fn run(
        &self,
        connection: &mut Connection,
        items: Vec<Self::Item>,
    ) -> impl Future<Output = Result<Vec<Self::Answer>, Failed<Self::Item>>> + Send;
}

/// Why a batch was not done, and the batch.
pub(super) type Failed<Item> = (DatabaseError, Vec<Item>);

/// How much at once.
#[derive(Debug, Clone, Copy)]
pub(super) struct LaneOptions {
    /// Items in a batch.
    pub(super) items_max: usize,
    /// Bytes in a batch, unless its first item alone has more.
    pub(super) bytes_max: usize,
    /// Bytes of everything that waits or is in flight: who brings more waits outside.
    pub(super) room: usize,
    /// How often a batch is tried when the connection is lost.
    pub(super) attempts: u32,
}

impl Default for LaneOptions {
    fn default() -> Self {
        Self { items_max: 4096, bytes_max: 8 * 1024 * 1024, room: 64 * 1024 * 1024, attempts: 4 }
    }
}

/// Requests that may wait inside; the rest waits at the door, without having been looked at.
const REQUESTS_MAX: usize = 4096;
/// Room is counted in pieces of this many bytes.
const PIECE: usize = 1024;

/// The way in. Its task starts with the first request, and ends with the ground.
pub(super) struct Lane<W: Work> {
    ground: Arc<Ground>,
    name: &'static str,
    door: mpsc::Sender<Request<W>>,
    room: Arc<Semaphore>,
    pieces: usize,
    crew: Mutex<Option<Crew<W>>>,
    counts: Arc<Counts>,
}

impl<W: Work> Lane<W> {
    /// `name` is what the operator sees in `pg_stat_activity`.
    pub(super) fn start(ground: &Arc<Ground>, name: &'static str, options: LaneOptions, work: W) -> Self {
        let (door, requests) = mpsc::channel(REQUESTS_MAX);
        let pieces = options.room.div_ceil(PIECE).max(1);
        let counts = Arc::new(Counts::default());
        let crew = Crew::new(Arc::clone(ground), name, options, work, (requests, Arc::clone(&counts)));
        Self {
            ground: Arc::clone(ground),
            name,
            door,
            room: Arc::new(Semaphore::new(pieces)),
            pieces,
            crew: Mutex::new(Some(crew)),
            counts,
        }
    }

    /// What it has done so far.
    pub(super) fn figures(&self) -> LaneFigures {
        self.counts.read(self.name)
    }

    /// Have these done, and wait for what became of each. A caller that goes away leaves its items to their course.
    pub(super) async fn send(&self, items: Vec<W::Item>) -> Vec<Result<W::Answer, MessagesError>> {
        let count = items.len();
        let closed = || std::iter::repeat_with(|| Err(MessagesError::Closed)).take(count).collect();
        if count == 0 {
            return Vec::new();
        }
        let weight: usize = items.iter().map(W::weight).sum();
        let pieces = weight.div_ceil(PIECE).clamp(1, self.pieces);
        let Ok(room) = Arc::clone(&self.room).acquire_many_owned(u32::try_from(pieces).unwrap_or(u32::MAX)).await
        else {
            return closed();
        };
        self.man();
        let (answer, answered) = oneshot::channel();
        if self.door.send(Request { items, weight, answer, room }).await.is_err() {
            return closed();
        }
        answered.await.unwrap_or_else(|_| closed())
    }

    fn man(&self) {
        let crew = self.crew.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(crew) = crew {
            self.ground.tasks.spawn(crew.serve());
        }
    }
}

impl<W: Work> fmt::Debug for Lane<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lane").field("name", &self.name).finish_non_exhaustive()
    }
}
