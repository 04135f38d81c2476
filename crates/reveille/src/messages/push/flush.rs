//! One flush: stores a batcher's entries, and answers each.
//!
//! A round plans the flush, divides it into batches, and appends each batch with one statement,
//! which commits by itself: the quick append. The statement stores nothing if a partition or its
//! queue is gone, the queue is encrypted since or no longer, a transaction id was seen before, the
//! outbox holds earlier pushes, or pushes are paused. The next round then makes a
//! [careful](super::careful) append. So does a flush with entries that may be stored already,
//! because an attempt with them failed.
//!
//! Next: [`super::plan`], [`super::batch`], [`super::columns`]; then [`crate::messages::ready`].

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::batch::{Layout, PushBatch, says_seen};
use super::careful;
use super::columns::Columns;
use super::entry::{Entry, Verdict};
use super::item::Pushed;
use super::plan;
use crate::batcher::{Failed, Work};
use crate::database::{Connection, DatabaseError};
use crate::messages::context::MessagesContext;
use crate::messages::error::MessagesError;
use crate::messages::ids::{PartitionId, QueueId};
use crate::messages::statements::APPEND;

/// The SQLSTATE of an append that found a transaction id which another statement noted, without the
/// lock of the partition row, while the append ran.
const SEEN_BEFORE: &str = "RV001";
/// A producer that repeats pushes does so for a while: for so long every append is careful.
const CAREFUL_FOR: Duration = Duration::from_millis(500);
/// How many rounds a flush makes at most if its queues are deleted meanwhile.
const ROUNDS_MAX: usize = 8;

/// The result of an append.
enum Appended {
    Stored,
    /// A transaction id was seen before: nothing was stored. A careful append finds out which.
    Seen,
    /// A partition or queue is gone or changed, the outbox holds earlier pushes, or pushes are
    /// paused: nothing was stored.
    Declined,
}

pub(in crate::messages) struct Flusher {
    context: Arc<MessagesContext>,
    careful_until: Mutex<Option<Instant>>,
}

impl Work for Flusher {
    type Item = Entry;
    type Answer = Result<Pushed, MessagesError>;
    type Error = MessagesError;

    fn weight(entry: &Entry) -> usize {
        entry.weight()
    }

    async fn run(
        &self,
        connection: &mut Connection,
        mut entries: Vec<Entry>,
    ) -> Result<Vec<Self::Answer>, Failed<Entry>> {
        match self.flush(connection, &mut entries).await {
            Ok(()) => Ok(answers(entries)),
            Err(error) => {
                entries.iter_mut().for_each(Entry::doubt);
                Err((error, entries))
            }
        }
    }
}

impl Flusher {
    pub(super) fn new(context: &Arc<MessagesContext>) -> Self {
        Self { context: Arc::clone(context), careful_until: Mutex::default() }
    }

    async fn flush(&self, connection: &mut Connection, entries: &mut Vec<Entry>) -> Result<(), DatabaseError> {
        for round in 0..ROUNDS_MAX {
            let queues = plan::plan(&self.context, connection, entries).await?;
            let mut layout = Layout::of(&self.context, std::mem::take(entries), &queues);
            let appended = self.append_all(connection, &mut layout.batches, round == 0).await;
            *entries = layout.into_entries();
            appended?;
            if entries.iter().all(Entry::is_decided) {
                break;
            }
        }
        Ok(())
    }

    async fn append_all(
        &self,
        connection: &mut Connection,
        batches: &mut [PushBatch],
        is_first_round: bool,
    ) -> Result<(), DatabaseError> {
        for batch in batches {
            let quick = is_first_round && !batch.is_doubtful() && !self.is_careful();
            let appended = if quick {
                append(connection, batch).await?
            } else if careful::append(&self.context, connection, batch).await? {
                Appended::Stored
            } else {
                Appended::Declined
            };
            wake(&self.context, &batch.stored_before());
            match appended {
                Appended::Stored => wake(&self.context, &batch.partitions()),
                Appended::Seen => self.be_careful(),
                Appended::Declined => batch.forget_partitions(&self.context),
            }
        }
        Ok(())
    }

    fn is_careful(&self) -> bool {
        let until = *self.careful_until.lock().unwrap_or_else(PoisonError::into_inner);
        until.is_some_and(|until| Instant::now() < until)
    }

    fn be_careful(&self) {
        *self.careful_until.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now() + CAREFUL_FOR);
    }
}

/// The quick append.
async fn append(connection: &Connection, batch: &mut PushBatch) -> Result<Appended, DatabaseError> {
    let rows = match connection.query(&APPEND, &Columns::of(batch).params(&true)).await {
        Ok(rows) => rows,
        Err(error) if error.sqlstate() == Some(SEEN_BEFORE) => return Ok(Appended::Seen),
        Err(error) => return Err(error),
    };
    if says_seen(&rows) {
        return Ok(Appended::Seen);
    }
    if rows.is_empty() {
        return Ok(Appended::Declined);
    }
    batch.stored(&rows);
    Ok(Appended::Stored)
}

/// Wakes the consumers of these partitions.
pub(super) fn wake(context: &MessagesContext, partitions: &[(QueueId, PartitionId)]) {
    let mut partitions = partitions.to_vec();
    partitions.sort_unstable();
    partitions.dedup();
    for of_queue in partitions.chunk_by(|one, other| one.0 == other.0) {
        let ids: Vec<PartitionId> = of_queue.iter().map(|(_, partition)| *partition).collect();
        context.notifier.pushed(of_queue[0].0, &ids);
    }
}

/// The answer to every entry. One that repeats an earlier entry gets its answer by that one's.
pub(super) fn answers(mut entries: Vec<Entry>) -> Vec<Result<Pushed, MessagesError>> {
    for index in 0..entries.len() {
        if let Some(Verdict::Repeats(first)) = entries[index].verdict {
            let (verdict, partition) = (entries[first].verdict_of_repeat(), entries[first].partition.clone());
            (entries[index].verdict, entries[index].partition) = (verdict, partition);
        }
    }
    entries.into_iter().map(Entry::answer).collect()
}
