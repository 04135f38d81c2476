//! Push: messages become durable and ordered.
//!
//! Owns two batchers, each with a connection; a partition always goes to the same one. The messages
//! that arrive while one flush is running make up the next. New queues and partitions are created
//! before that (`create`). A large call is sent in portions (`portion`), so that a small call waits
//! for one portion of it and never for all. Promises an answer for every item in the order of the
//! call (`call`), after the commit; that an item which cannot be stored fails alone; that a
//! partition stores a transaction id once within its window; and that a flush whose answer was lost
//! is stored once.
//!
//! Next: `flush`, which stores one flush; then [`super::ready`], which wakes consumers.

mod batch;
mod call;
mod careful;
mod columns;
mod create;
mod entry;
mod flush;
mod in_transaction;
mod item;
mod key;
mod plan;
mod portion;

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

pub use item::{PushItem, PushOutcome, Pushed};

pub(super) use create::CREATORS;
pub(super) use entry::Entry;
pub(super) use in_transaction::prepare;

use super::Messages;
use super::context::MessagesContext;
use super::error::MessagesError;
use crate::batcher::{Batcher, BatcherFigures, BatcherOptions};
use call::{Answers, Part};
use create::PartitionCreator;
use flush::Flusher;
use portion::{portion_of_entries, send_in_portions};

pub(super) const BATCHERS: [&str; 2] = ["push-1", "push-2"];
/// PostgreSQL can hold four times as much, but needs several times that to work on it.
const PAYLOAD_BYTES_MAX: usize = 256 * 1024 * 1024;
/// A process that only pushes waits no more often than this until its hints are sent.
const HINTS_FLUSHED_EVERY: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(super) struct Pusher {
    context: Arc<MessagesContext>,
    creator: PartitionCreator,
    batchers: Vec<Batcher<Flusher>>,
    payload_bytes_max: usize,
    hasher: RandomState,
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
            creator: PartitionCreator::new(context),
            batchers: BATCHERS.into_iter().map(batcher).collect(),
            payload_bytes_max: context.options.payload_bytes_max.min(PAYLOAD_BYTES_MAX),
            hasher: RandomState::new(),
        }
    }

    async fn push_one(&self, item: PushItem) -> Result<Pushed, MessagesError> {
        let mut entries = [Entry::checked(item, self.payload_bytes_max)?];
        self.creator.find_partitions(&mut entries).await;
        let [entry] = entries;
        if entry.is_decided() {
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
        let mut answers = Answers::none(items.len());
        let mut valid = self.check(items, &mut answers);
        self.creator.find_partitions(&mut valid.entries).await;
        let parts = self.divide(valid, &mut answers).into_iter().zip(&self.batchers);
        let sent = parts.filter(|(part, _)| !part.entries.is_empty()).map(async |(part, batcher)| {
            (part.positions, send_in_portions(batcher, part.entries, portion_of_entries).await)
        });
        for (positions, answered) in join_all(sent).await {
            answers.fill(positions, answered.into_iter().map(Result::flatten));
        }
        answers.all()
    }

    /// The items that PostgreSQL can hold; the others are answered.
    fn check(&self, items: Vec<PushItem>, answers: &mut Answers) -> Part {
        let mut valid = Part::with_capacity(items.len());
        for (position, item) in items.into_iter().enumerate() {
            match Entry::checked(item, self.payload_bytes_max) {
                Ok(entry) => valid.add(position, entry),
                Err(refused) => answers.set(position, Err(refused)),
            }
        }
        valid
    }

    /// A part of the call for each batcher; entries that are decided are answered.
    fn divide(&self, call: Part, answers: &mut Answers) -> Vec<Part> {
        let mut parts: Vec<Part> = self.batchers.iter().map(|_| Part::default()).collect();
        for (position, entry) in call.positions.into_iter().zip(call.entries) {
            if entry.is_decided() {
                answers.set(position, entry.answer());
            } else {
                parts[self.batcher_of(&entry)].add(position, entry);
            }
        }
        parts
    }

    /// A program that only pushes may exit right after a push, so the push waits until its hints
    /// are sent. If pushes follow each other quickly, a later push or [`Messages::close`] waits
    /// instead.
    async fn flush_hints(&self) {
        self.context.notifier.flush_if_alone_every(HINTS_FLUSHED_EVERY).await;
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
