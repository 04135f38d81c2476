//! The task of a batcher: gathers requests, runs them as a batch, answers.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use tokio::task::yield_now;
use tokio::time::sleep;

use super::counts::Counts;
use super::statements::{END_SESSION, SESSION};
use super::{AtEnd, BatcherOptions, Failed, Post, Undone, Work};
use crate::database::outage::warn_unless_away;
use crate::database::pauses::Pauses;
use crate::database::{Connection, DatabaseError, Purpose};

/// Between attempts at one batch.
const PAUSES: Pauses = Pauses::after_one_at_once(Duration::from_millis(50), Duration::from_secs(1));

/// One caller's items, and where its answers go.
pub(super) struct Request<W: Work> {
    pub(super) items: Vec<W::Item>,
    pub(super) weight: usize,
    pub(super) answer: oneshot::Sender<Vec<Result<W::Answer, W::Error>>>,
    /// Given back when the request is answered.
    pub(super) room: OwnedSemaphorePermit,
}

pub(super) struct BatcherTask<W: Work> {
    post: Post,
    options: BatcherOptions,
    work: W,
    requests: mpsc::Receiver<Request<W>>,
    /// A request that did not fit into the batch before.
    held: Option<Request<W>>,
    connection: Option<Connection>,
    /// The session behind the connection; `None` behind a pooler, which has its own.
    session: Option<(i32, String)>,
    counts: Arc<Counts>,
}

impl<W: Work> BatcherTask<W> {
    pub(super) fn new(
        post: Post,
        options: BatcherOptions,
        work: W,
        requests: mpsc::Receiver<Request<W>>,
        counts: Arc<Counts>,
    ) -> Self {
        Self { post, options, work, requests, held: None, connection: None, session: None, counts }
    }

    pub(super) async fn serve(mut self) {
        while let Some(first) = self.next().await {
            self.serve_from(first).await;
            // Callers that were answered often send again at once. Without this pause the next
            // batch would run with the first of them alone.
            yield_now().await;
        }
        self.requests.close();
        while let Some(left) = self.left().await {
            // Dropping a request answers it.
            if self.options.at_end == AtEnd::Finish {
                self.serve_from(left).await;
            }
        }
    }

    /// Waits for a request. `None` at the end.
    async fn next(&mut self) -> Option<Request<W>> {
        if self.held.is_none() {
            self.held = self.post.end.run_until_cancelled(self.requests.recv()).await.flatten();
        }
        if self.post.end.is_cancelled() { None } else { self.held.take() }
    }

    /// A request that waited at the end.
    async fn left(&mut self) -> Option<Request<W>> {
        match self.held.take() {
            Some(request) => Some(request),
            None => self.requests.recv().await,
        }
    }

    /// This request, and the others that wait.
    async fn serve_from(&mut self, first: Request<W>) {
        let batch = self.gather(first);
        self.counts.begin(batch.iter().map(|request| request.items.len()).sum());
        self.serve_batch(batch).await;
        self.counts.end();
    }

    fn gather(&mut self, first: Request<W>) -> Vec<Request<W>> {
        let (mut items, mut bytes) = (first.items.len(), first.weight);
        let mut batch = vec![first];
        while let Ok(request) = self.requests.try_recv() {
            items += request.items.len();
            bytes += request.weight;
            if items > self.options.items_max || bytes > self.options.bytes_max {
                self.held = Some(request);
                break;
            }
            batch.push(request);
        }
        batch
    }

    async fn serve_batch(&mut self, batch: Vec<Request<W>>) {
        let mut items = Vec::with_capacity(batch.iter().map(|request| request.items.len()).sum());
        let mut waiting = Vec::with_capacity(batch.len());
        for request in batch {
            waiting.push((request.items.len(), request.answer, request.room));
            items.extend(request.items);
        }
        let mut answers = self.run(items).await.into_iter();
        for (count, answer, _room) in waiting {
            // The caller may have gone.
            let _ = answer.send(answers.by_ref().take(count).collect());
        }
    }

    /// Every item's answer, in order. A piece that is refused because of its values is halved until
    /// the bad item is alone.
    async fn run(&mut self, items: Vec<W::Item>) -> Vec<Result<W::Answer, W::Error>> {
        let mut answers = Vec::with_capacity(items.len());
        let mut pending = vec![items];
        while let Some(mut piece) = pending.pop() {
            let fits = self.fitting(&piece);
            if fits < piece.len() {
                pending.push(piece.split_off(fits));
            }
            match self.run_piece(piece).await {
                Ok(done) => answers.extend(done.into_iter().map(Ok)),
                Err((DatabaseError::Data { .. }, mut piece)) if piece.len() > 1 => {
                    pending.push(piece.split_off(piece.len() / 2));
                    pending.push(piece);
                }
                Err((error, piece)) => {
                    let alone = matches!(error, DatabaseError::Data { .. }) || !self.options.in_order;
                    let failed = piece.len() + if alone { 0 } else { pending.drain(..).map(|later| later.len()).sum() };
                    answers.extend((0..failed).map(|_| Err(Undone::Failed(error.clone()).into())));
                }
            }
        }
        answers
    }

    /// How many of the items fit into one batch.
    fn fitting(&self, items: &[W::Item]) -> usize {
        let mut bytes = 0;
        let within = items.iter().take(self.options.items_max).take_while(|item| {
            bytes += W::weight(item);
            bytes <= self.options.bytes_max
        });
        within.count().max(1)
    }

    /// Tries a piece again while that may help. When all attempts fail, the error of an interrupted
    /// one is returned first: it says that the piece may have taken effect.
    async fn run_piece(&mut self, mut items: Vec<W::Item>) -> Result<Vec<W::Answer>, Failed<W::Item>> {
        let mut interrupted = None;
        let (mut attempt, mut pauses) = (1, PAUSES);
        loop {
            let (error, back) = match self.attempt(items).await {
                Ok(answers) => return Ok(answers),
                Err(failed) => failed,
            };
            items = back;
            if !W::may_repeat(&error) {
                return Err((error, items));
            }
            let refuses = self.options.at_end == AtEnd::Refuse && self.post.end.is_cancelled();
            if attempt >= self.options.attempts || refuses {
                return Err((interrupted.unwrap_or(error), items));
            }
            let pause = pauses.next();
            warn_unless_away!(&error, batcher = self.post.name, attempt, items = items.len(), retry_in = ?pause, %error, "a batch failed, trying again");
            if interrupts(&error) {
                interrupted.get_or_insert(error);
            }
            sleep(pause).await;
            attempt += 1;
        }
    }

    async fn attempt(&mut self, items: Vec<W::Item>) -> Result<Vec<W::Answer>, Failed<W::Item>> {
        let broken = self.connection.as_ref().is_none_or(Connection::is_closed);
        if broken && let Err(error) = self.open().await {
            return Err((error, items));
        }
        match &mut self.connection {
            Some(connection) => self.work.run(connection, items).await,
            None => Err((DatabaseError::Closed, items)),
        }
    }

    /// A new connection. The session of the old one is ended first: the server may hold a statement
    /// of ours that it has not begun, and a check of what took effect would come too early.
    async fn open(&mut self) -> Result<(), DatabaseError> {
        self.connection = None;
        let opened = self.post.database.connection(Purpose::Dedicated(self.post.name)).await?;
        if let Some((pid, started)) = &self.session {
            opened.query(&END_SESSION, &[pid, started]).await?;
        }
        self.session = None;
        if !opened.is_pooled() {
            let row = opened.query_opt(&SESSION, &[]).await?;
            self.session = row.map(|row| (row.get("pid"), row.get("started")));
        }
        self.connection = Some(opened);
        Ok(())
    }
}

/// Whether a statement with this error may have taken effect.
pub(crate) fn interrupts(error: &DatabaseError) -> bool {
    matches!(
        error,
        DatabaseError::Lost { .. } | DatabaseError::Timeout { cause: None, .. } | DatabaseError::UnknownOutcome { .. }
    )
}
