//! Push: messages become durable and ordered.
//!
//! Owns two batchers, each with a connection; a partition always goes to the same one. The messages
//! that arrive while one flush is running make up the next. New queues and partitions are created
//! before that (`making`). A large call is sent in portions (`portion`), so that a small call waits
//! for one portion of it and never for all. Promises an answer for every item in the order of the
//! call, after the commit; that an item which cannot be stored fails alone; that a partition stores
//! a transaction id once within its window; and that a flush whose answer was lost is stored once.
//!
//! Next: `flush`, which stores one flush; then [`super::ready`], which wakes consumers.

mod batch;
mod careful;
mod columns;
mod entry;
mod flush;
mod in_transaction;
mod item;
mod key;
mod making;
mod plan;
mod portion;

use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::join_all;

pub use item::{PushItem, PushOutcome, Pushed};

pub(super) use entry::Entry;
pub(super) use in_transaction::prepare;
pub(super) use making::MAKERS;

use super::Messages;
use super::context::MessagesContext;
use super::error::MessagesError;
use crate::batcher::{Batcher, BatcherFigures, BatcherOptions};
use flush::Flusher;
use making::Maker;
use portion::send_in_portions;

pub(super) const BATCHERS: [&str; 2] = ["push-1", "push-2"];
/// PostgreSQL can hold four times as much, but needs several times that to work on it.
const PAYLOAD_BYTES_MAX: usize = 256 * 1024 * 1024;
/// A process that only pushes waits no more often than this until its hints are sent.
const HINTS_FLUSHED_EVERY: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(super) struct Pusher {
    context: Arc<MessagesContext>,
    maker: Maker,
    batchers: Vec<Batcher<Flusher>>,
    payload_bytes_max: usize,
    hasher: RandomState,
    /// When a caller last waited until the hints were sent.
    hints_flushed_at: Mutex<Option<Instant>>,
}

impl Messages {
    /// Store messages, durably and in this order for each partition. Queues and partitions that do
    /// not exist are created. Every item is answered, in the order of the call: a refused item does
    /// not keep the others from being stored.
    pub async fn push(&self, items: Vec<PushItem>) -> Vec<Result<Pushed, MessagesError>> {
        let pushed = self.parts.pusher.push(items).await;
        self.parts.pusher.flush_hints().await;
        pushed
    }

    /// Store one message.
    pub async fn push_one(&self, item: PushItem) -> Result<Pushed, MessagesError> {
        let pushed = self.parts.pusher.push_one(item).await;
        self.parts.pusher.flush_hints().await;
        pushed
    }
}

impl Pusher {
    pub(super) fn new(context: &Arc<MessagesContext>) -> Self {
        let batcher = |name| context.service.batcher(name, BatcherOptions::default(), Flusher::new(context));
        Self {
            context: Arc::clone(context),
            maker: Maker::new(context),
            batchers: BATCHERS.into_iter().map(batcher).collect(),
            payload_bytes_max: context.options.payload_bytes_max.min(PAYLOAD_BYTES_MAX),
            hasher: RandomState::new(),
            hints_flushed_at: Mutex::default(),
        }
    }

    async fn push_one(&self, item: PushItem) -> Result<Pushed, MessagesError> {
        let mut entries = [Entry::checked(item, self.payload_bytes_max)?];
        self.maker.find_partitions(&mut entries).await;
        let [entry] = entries;
        if entry.verdict.is_some() {
            return entry.answer();
        }
        let answer = self.batchers[self.batcher_of(&entry)].send(vec![entry]).await.pop();
        answer.unwrap_or(Err(MessagesError::Closed))?
    }

    async fn push(&self, mut items: Vec<PushItem>) -> Vec<Result<Pushed, MessagesError>> {
        // Most calls bring one item, which needs no sorting.
        if items.len() == 1
            && let Some(item) = items.pop()
        {
            return vec![self.push_one(item).await];
        }
        let mut answers: Vec<Option<Result<Pushed, MessagesError>>> = Vec::with_capacity(items.len());
        let (mut entries, mut positions) = (Vec::with_capacity(items.len()), Vec::with_capacity(items.len()));
        for item in items {
            match Entry::checked(item, self.payload_bytes_max) {
                Ok(entry) => {
                    positions.push(answers.len());
                    entries.push(entry);
                    answers.push(None);
                }
                Err(refused) => answers.push(Some(Err(refused))),
            }
        }
        self.maker.find_partitions(&mut entries).await;
        let mut shares: Vec<Share> = self.batchers.iter().map(|_| Share::default()).collect();
        for (position, entry) in positions.into_iter().zip(entries) {
            if entry.verdict.is_some() {
                answers[position] = Some(entry.answer());
                continue;
            }
            let share = &mut shares[self.batcher_of(&entry)];
            share.positions.push(position);
            share.entries.push(entry);
        }
        let sent = shares.into_iter().zip(&self.batchers).filter(|(share, _)| !share.entries.is_empty());
        let sent = sent.map(async |(share, batcher)| (share.positions, send_in_portions(batcher, share.entries).await));
        for (positions, answered) in join_all(sent).await {
            for (position, answer) in positions.into_iter().zip(answered) {
                answers[position] = Some(answer);
            }
        }
        answers.into_iter().map(|answer| answer.unwrap_or(Err(MessagesError::Closed))).collect()
    }

    /// A program that only pushes may exit right after a push, so the push waits until its hints
    /// are sent. If pushes follow each other quickly, a later push or [`Messages::close`] waits
    /// instead.
    async fn flush_hints(&self) {
        let due = |last: &mut Option<Instant>| {
            let now = Instant::now();
            let due = last.is_none_or(|last| now.duration_since(last) > HINTS_FLUSHED_EVERY);
            *last = if due { Some(now) } else { *last };
            due
        };
        if !self.context.service.serves()
            && due(&mut self.hints_flushed_at.lock().unwrap_or_else(PoisonError::into_inner))
        {
            self.context.notifier.flush().await;
        }
    }

    pub(super) fn figures(&self) -> Vec<BatcherFigures> {
        self.batchers.iter().map(Batcher::figures).collect()
    }

    /// Always the same batcher for a partition: this keeps the order of its messages.
    fn batcher_of(&self, entry: &Entry) -> usize {
        let hash = self.hasher.hash_one((&entry.item.queue, &entry.item.partition));
        usize::try_from(hash % self.batchers.len() as u64).unwrap_or(0)
    }
}

/// The entries of a call for one batcher, with their positions in the call.
#[derive(Default)]
struct Share {
    positions: Vec<usize>,
    entries: Vec<Entry>,
}
