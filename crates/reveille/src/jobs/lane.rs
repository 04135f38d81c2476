//! A lane: what many callers ask at once becomes one statement.
//!
//! Owns a queue of requests and one connection. Promises natural batches: what arrives while one is in flight forms the next, so
//! nobody waits for company and no timer runs; that one bad item fails alone; and that what was asked for before the end is done.
//! Refuses nothing but what comes after the end: whoever brings more than there is room for waits. Knows no SQL: see [`Work`].
//!
//! Next: [`super::enqueue`] and [`super::settle`], which say what a batch does.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::task::yield_now;
use tokio::time::sleep;
use tracing::warn;

use super::ground::Ground;
use crate::database::{Connection, DatabaseError, Purpose};

/// Requests that may wait inside; the rest waits at the door.
const REQUESTS_MAX: usize = 4096;
/// Bytes of everything that waits or is in flight, counted in pieces.
const PIECE: usize = 1024;
const PIECES: usize = 64 * 1024;
const BATCH_BYTES_MAX: usize = 8 * 1024 * 1024;
/// The first pause after a failed attempt, doubled with every further one up to a second.
const FIRST_PAUSE: Duration = Duration::from_millis(25);

/// What a lane does with a batch.
pub(super) trait Work: Send + Sync + 'static {
    /// One thing asked for.
    type Item: Send + Sync + 'static;
    /// What became of it.
    type Answer: Send + 'static;
    /// What the operator sees in `pg_stat_activity`.
    const NAME: &'static str;
    /// Items in a batch.
    const MOST: usize;
    /// How often a batch is tried.
    const ATTEMPTS: u32;

    /// About how many bytes an item takes on its way.
    fn weight(item: &Self::Item) -> usize;

    /// Whether it may be tried again after this: nothing was done, or doing it twice does no harm.
    fn may_repeat(error: &DatabaseError) -> bool;

    /// Do all of it, and answer in the order of the items. `again` when an earlier attempt may have done it already.
    fn run(
        &self,
        connection: &Connection,
        items: &[Self::Item],
        again: bool,
    ) -> impl Future<Output = Result<Vec<Self::Answer>, DatabaseError>> + Send;
}

type Answers<W> = Vec<Result<<W as Work>::Answer, DatabaseError>>;

struct Request<W: Work> {
    items: Vec<W::Item>,
    answer: oneshot::Sender<Answers<W>>,
    /// Given back when it is answered.
    room: OwnedSemaphorePermit,
}

/// The way in. Its task starts with the first request.
pub(super) struct Lane<W: Work> {
    ground: Arc<Ground>,
    door: mpsc::Sender<Request<W>>,
    room: Arc<Semaphore>,
    crew: Mutex<Option<Crew<W>>>,
}

impl<W: Work> Lane<W> {
    pub(super) fn new(ground: &Arc<Ground>, work: W) -> Self {
        let (door, requests) = mpsc::channel(REQUESTS_MAX);
        let crew = Crew { ground: Arc::clone(ground), work, requests, connection: None };
        Self { ground: Arc::clone(ground), door, room: Arc::new(Semaphore::new(PIECES)), crew: Mutex::new(Some(crew)) }
    }

    /// Have these done, and wait for what became of each. A caller that goes away leaves them to their course.
    pub(super) async fn send(&self, items: Vec<W::Item>) -> Answers<W> {
        let count = items.len();
        let closed = || (0..count).map(|_| Err(DatabaseError::Closed)).collect();
        let weight: usize = items.iter().map(W::weight).sum();
        let pieces = u32::try_from(weight.div_ceil(PIECE).clamp(1, PIECES)).unwrap_or(u32::MAX);
        let Ok(room) = Arc::clone(&self.room).acquire_many_owned(pieces).await else { return closed() };
        let crew = self.crew.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(crew) = crew {
            self.ground.lanes.spawn(crew.serve());
        }
        let (answer, answered) = oneshot::channel();
        if count == 0 || self.door.send(Request { items, answer, room }).await.is_err() {
            return closed();
        }
        answered.await.unwrap_or_else(|_| closed())
    }
}

impl<W: Work> fmt::Debug for Lane<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lane").field("name", &W::NAME).finish_non_exhaustive()
    }
}

/// The task behind a lane: gathers, runs, answers.
struct Crew<W: Work> {
    ground: Arc<Ground>,
    work: W,
    requests: mpsc::Receiver<Request<W>>,
    connection: Option<Connection>,
}

impl<W: Work> Crew<W> {
    async fn serve(mut self) {
        let end = self.ground.lanes_end.clone();
        while let Some(Some(first)) = end.run_until_cancelled(self.requests.recv()).await {
            self.serve_from(first).await;
            // Those who were answered ask again at once, if they do; without this the next batch would leave with the first of them
            // alone.
            yield_now().await;
        }
        self.requests.close();
        while let Some(first) = self.requests.recv().await {
            self.serve_from(first).await;
        }
    }

    /// This request and what else is there.
    async fn serve_from(&mut self, first: Request<W>) {
        let mut bytes = 0;
        let mut items = Vec::new();
        let mut waiting = Vec::new();
        let mut next = Some(first);
        while let Some(request) = next {
            bytes += request.items.iter().map(W::weight).sum::<usize>();
            waiting.push((request.items.len(), request.answer, request.room));
            items.extend(request.items);
            let is_full = items.len() >= W::MOST || bytes >= BATCH_BYTES_MAX;
            next = if is_full { None } else { self.requests.try_recv().ok() };
        }
        let mut answers = self.run(items).await.into_iter();
        for (count, answer, _room) in waiting {
            // A caller that is gone is not missed.
            let _ = answer.send(answers.by_ref().take(count).collect());
        }
    }

    /// Every item's answer, in order. What is refused because of its values is halved until the bad item stands alone.
    async fn run(&mut self, items: Vec<W::Item>) -> Answers<W> {
        let mut answers = Vec::with_capacity(items.len());
        let mut pending = vec![items];
        while let Some(mut piece) = pending.pop() {
            if piece.len() > W::MOST {
                pending.push(piece.split_off(W::MOST));
            }
            match self.run_piece(&piece).await {
                Ok(done) => answers.extend(done.into_iter().map(Ok)),
                Err(DatabaseError::Data { .. }) if piece.len() > 1 => {
                    pending.push(piece.split_off(piece.len() / 2));
                    pending.push(piece);
                }
                Err(error) => answers.extend(piece.iter().map(|_| Err(error.clone()))),
            }
        }
        answers
    }

    async fn run_piece(&mut self, items: &[W::Item]) -> Result<Vec<W::Answer>, DatabaseError> {
        let (mut attempt, mut again) = (1, false);
        loop {
            let error = match self.attempt(items, again).await {
                Ok(answers) => return Ok(answers),
                Err(error) => error,
            };
            if !W::may_repeat(&error) || attempt >= W::ATTEMPTS {
                return Err(error);
            }
            let longest = (FIRST_PAUSE * 2_u32.pow(attempt.min(8) - 1)).min(Duration::from_secs(1));
            let pause = longest.mul_f64(fastrand::f64());
            warn!(lane = W::NAME, attempt, items = items.len(), retry_in = ?pause, %error, "a batch failed, trying again");
            again |= !matches!(error, DatabaseError::Unreachable { .. } | DatabaseError::Transient { .. });
            sleep(pause).await;
            attempt += 1;
        }
    }

    async fn attempt(&mut self, items: &[W::Item], again: bool) -> Result<Vec<W::Answer>, DatabaseError> {
        let connection = match &mut self.connection {
            Some(connection) if !connection.is_closed() => connection,
            other => other.insert(self.ground.database.connection(Purpose::Lane(W::NAME)).await?),
        };
        self.work.run(connection, items, again).await
    }
}
