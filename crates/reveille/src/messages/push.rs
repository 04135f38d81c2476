//! Push: messages become durable and ordered.
//!
//! Owns two flushers, each with a connection; a partition always goes to the same one. What callers
//! bring while a flush is in flight makes up the next. New names are made before that, and a large
//! call stands in line portion by portion, so that a small one waits for one portion and never for
//! the whole. Promises an answer for every item in the order of the call, given after the commit;
//! that an item which cannot be stored fails alone; that a transaction id comes in once within its
//! window; and that a flush whose answer was lost is stored once.
//!
//! Next: [`super::ready`], which wakes whoever waits.

mod batch;
mod careful;
mod columns;
mod entry;
mod flush;
mod item;
mod key;
mod making;
mod plan;
mod portion;
mod within;

use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::join_all;

pub use item::{PushItem, PushOutcome, Pushed};

pub(super) use entry::Entry;
pub(super) use making::MAKERS;
pub(super) use within::prepare;

use super::Messages;
use super::context::MessagesContext;
use super::error::MessagesError;
use crate::batcher::{Batcher, BatcherFigures, BatcherOptions};
use flush::Flusher;
use making::Maker;
use portion::send_in_portions;

pub(super) const BATCHERS: [&str; 2] = ["push-1", "push-2"];
/// PostgreSQL could hold four times as much, and would need many times that to work on it.
const PAYLOAD_BYTES_MAX: usize = 256 * 1024 * 1024;
/// A process that only pushes waits for its hints no more often than this.
const TOLD_EVERY: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(super) struct Pusher {
    context: Arc<MessagesContext>,
    maker: Maker,
    batchers: Vec<Batcher<Flusher>>,
    payload_bytes_max: usize,
    hasher: RandomState,
    /// When a caller last waited until the other nodes were told.
    told_at: Mutex<Option<Instant>>,
}

impl Messages {
    /// Store messages, durably and in this order for each partition; queues and partitions that are
    /// not there are made. Every item is answered, in the order of the call: one that is refused
    /// does not keep the others from being stored.
    pub async fn push(&self, items: Vec<PushItem>) -> Vec<Result<Pushed, MessagesError>> {
        let pushed = self.parts.pusher.push(items).await;
        self.parts.pusher.tell().await;
        pushed
    }

    /// Store one message.
    pub async fn push_one(&self, item: PushItem) -> Result<Pushed, MessagesError> {
        let pushed = self.parts.pusher.push_one(item).await;
        self.parts.pusher.tell().await;
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
            told_at: Mutex::default(),
        }
    }

    async fn push_one(&self, item: PushItem) -> Result<Pushed, MessagesError> {
        let mut entries = [Entry::checked(item, self.payload_bytes_max)?];
        self.maker.place(&mut entries).await;
        let [entry] = entries;
        if entry.verdict.is_some() {
            return entry.answer();
        }
        let answer = self.batchers[self.batcher_of(&entry)].send(vec![entry]).await.pop();
        answer.unwrap_or(Err(MessagesError::Closed))?
    }

    async fn push(&self, mut items: Vec<PushItem>) -> Vec<Result<Pushed, MessagesError>> {
        // Most calls bring one, which needs no sorting.
        if items.len() == 1
            && let Some(item) = items.pop()
        {
            return vec![self.push_one(item).await];
        }
        let mut answers: Vec<Option<Result<Pushed, MessagesError>>> = Vec::with_capacity(items.len());
        let (mut entries, mut places) = (Vec::with_capacity(items.len()), Vec::with_capacity(items.len()));
        for item in items {
            match Entry::checked(item, self.payload_bytes_max) {
                Ok(entry) => {
                    places.push(answers.len());
                    entries.push(entry);
                    answers.push(None);
                }
                Err(refused) => answers.push(Some(Err(refused))),
            }
        }
        self.maker.place(&mut entries).await;
        let mut shares: Vec<Share> = self.batchers.iter().map(|_| Share::default()).collect();
        for (place, entry) in places.into_iter().zip(entries) {
            if entry.verdict.is_some() {
                answers[place] = Some(entry.answer());
                continue;
            }
            let share = &mut shares[self.batcher_of(&entry)];
            share.places.push(place);
            share.entries.push(entry);
        }
        let sent = shares.into_iter().zip(&self.batchers).filter(|(share, _)| !share.entries.is_empty());
        let sent = sent.map(async |(share, batcher)| (share.places, send_in_portions(batcher, share.entries).await));
        for (places, answered) in join_all(sent).await {
            for (place, answer) in places.into_iter().zip(answered) {
                answers[place] = Some(answer);
            }
        }
        answers.into_iter().map(|answer| answer.unwrap_or(Err(MessagesError::Closed))).collect()
    }

    /// A program that only pushes may exit right after: its hints leave first. One that pushes
    /// without a pause has the next push for that, and at last [`Messages::close`].
    async fn tell(&self) {
        let due = |told: &mut Option<Instant>| {
            let now = Instant::now();
            let due = told.is_none_or(|told| now.duration_since(told) > TOLD_EVERY);
            *told = if due { Some(now) } else { *told };
            due
        };
        if !self.context.service.serves() && due(&mut self.told_at.lock().unwrap_or_else(PoisonError::into_inner)) {
            self.context.notifier.flush().await;
        }
    }

    pub(super) fn figures(&self) -> Vec<BatcherFigures> {
        self.batchers.iter().map(Batcher::figures).collect()
    }

    /// The order of a partition is kept because one lane has it to itself.
    fn batcher_of(&self, entry: &Entry) -> usize {
        let hash = self.hasher.hash_one((&entry.item.queue, &entry.item.partition));
        usize::try_from(hash % self.batchers.len() as u64).unwrap_or(0)
    }
}

/// What one lane gets of a call, and where it stood there.
#[derive(Default)]
struct Share {
    places: Vec<usize>,
    entries: Vec<Entry>,
}
