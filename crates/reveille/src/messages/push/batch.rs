//! The entries of a flush that one statement appends.
//!
//! [`Layout`] divides the entries of a flush into batches, and puts them together again in the
//! order of the flush. In between, a [`PushBatch`] owns its entries: it passes them to the append
//! as [columns](super::columns), and notes the result of each.

use std::collections::HashMap;

use tokio_postgres::Row;

use super::entry::{Entry, Verdict};
use super::plan::Queues;
use crate::messages::context::MessagesContext;
use crate::messages::error::MessagesError;
use crate::messages::ids::{PartitionId, QueueId};

/// PostgreSQL walks an array to find a slice of it: beyond so many partitions in one statement,
/// another statement costs less.
const PARTITIONS_MAX: usize = 1024;

/// A flush, divided into batches.
#[derive(Default)]
pub(super) struct Layout {
    pub(super) batches: Vec<PushBatch>,
    /// Entries that were decided before, or have no partition yet.
    others: Vec<Entry>,
}

/// Entries whose payloads are sealed alike. Each has a partition; before the append, those in
/// `entries` are undecided.
pub(super) struct PushBatch {
    /// Partition by partition, partitions ascending.
    entries: Vec<Entry>,
    /// Entries that got their verdict before the append.
    decided: Vec<Entry>,
    /// The key that the payloads are sealed with.
    pub(super) key_id: Option<i32>,
}

/// Which batch an entry belongs to, and where in it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Position {
    is_sealed: bool,
    partition: i32,
    number: usize,
}

impl Layout {
    /// Plain entries apart from sealed ones. An entry that cannot be sealed is refused.
    pub(super) fn of(context: &MessagesContext, entries: Vec<Entry>, queues: &Queues) -> Self {
        let mut positions: Vec<Position> = entries.iter().filter_map(|entry| position(entry, queues)).collect();
        positions.sort_unstable();
        let mut entries: Vec<Option<Entry>> = entries.into_iter().map(Some).collect();
        let mut layout = Self::default();
        for sealed_alike in positions.chunk_by(|one, next| one.is_sealed == next.is_sealed) {
            let key_id = context.seal.write_key().filter(|_| sealed_alike[0].is_sealed);
            let partitions: Vec<&[Position]> =
                sealed_alike.chunk_by(|one, next| one.partition == next.partition).collect();
            for partitions in partitions.chunks(PARTITIONS_MAX) {
                let positions = partitions.iter().copied().flatten();
                let members = positions.filter_map(|position| entries[position.number].take()).collect();
                layout.batches.push(PushBatch::sealed(context, members, key_id));
            }
        }
        layout.others = entries.into_iter().flatten().collect();
        layout
    }

    /// All entries, in any order.
    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry> {
        let batched = self.batches.iter().flat_map(|batch| batch.entries.iter().chain(&batch.decided));
        self.others.iter().chain(batched)
    }

    pub(super) fn entry(&self, number: usize) -> Option<&Entry> {
        self.entries().find(|entry| entry.number == number)
    }

    /// Why the first entry that was refused cannot be stored.
    pub(super) fn first_refusal(&self) -> Option<&MessagesError> {
        let refusals = self.entries().filter_map(|entry| match &entry.verdict {
            Some(Verdict::Refused(refusal)) => Some((entry.number, refusal)),
            _ => None,
        });
        refusals.min_by_key(|(number, _)| *number).map(|(_, refusal)| refusal)
    }

    /// All entries, in the order of the flush.
    pub(super) fn into_entries(self) -> Vec<Entry> {
        let batched = self.batches.into_iter().flat_map(|batch| batch.entries.into_iter().chain(batch.decided));
        let mut entries: Vec<Entry> = self.others.into_iter().chain(batched).collect();
        // Entries are large: this sorts their numbers, and then moves each entry once.
        entries.sort_by_cached_key(|entry| entry.number);
        entries
    }
}

fn position(entry: &Entry, queues: &Queues) -> Option<Position> {
    let partition = entry.partition.as_ref().filter(|_| !entry.is_decided())?;
    let is_sealed = queues.get(&partition.queue).is_some_and(|queue| queue.encrypted);
    Some(Position { is_sealed, partition: partition.id.0, number: entry.number })
}

impl PushBatch {
    fn sealed(context: &MessagesContext, entries: Vec<Entry>, key_id: Option<i32>) -> Self {
        let mut batch = Self { entries, decided: Vec::new(), key_id };
        for entry in &mut batch.entries {
            let sealed = key_id.map(|key_id| context.seal.seal(key_id, entry.id, entry.item.payload.as_bytes()));
            match sealed.transpose() {
                Ok(sealed) => entry.sealed = sealed,
                Err(refused) => entry.refuse(refused),
            }
        }
        batch.set_decided_aside();
        batch
    }

    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(super) fn entries_mut(&mut self) -> &mut [Entry] {
        &mut self.entries
    }

    /// Entries that were decided since need no append.
    pub(super) fn set_decided_aside(&mut self) {
        self.decided.extend(self.entries.extract_if(.., |entry| entry.is_decided()));
    }

    /// Whether one of them may be in the log already.
    pub(super) fn is_doubtful(&self) -> bool {
        self.entries.iter().any(|entry| entry.doubtful)
    }

    /// The append stored them: each partition's entries are the last ones of its log, in their
    /// order.
    pub(super) fn stored(&mut self, rows: &[Row]) {
        let mut next = ends(rows);
        for entry in self.entries.iter_mut().rev() {
            let Some(partition) = &entry.partition else { continue };
            let Some(seq) = next.get_mut(&partition.id.0) else { continue };
            entry.verdict = Some(Verdict::Stored(*seq));
            *seq -= 1;
        }
    }

    /// What this process remembers of their queues may be outdated: the entries need their
    /// partitions again.
    pub(super) fn forget_partitions(&mut self, context: &MessagesContext) {
        for (queue, _) in self.partitions() {
            context.catalog.forget_queue(queue);
        }
        for entry in &mut self.entries {
            entry.partition = None;
        }
    }

    /// Which partitions, each once and ascending, with their queues.
    pub(super) fn partitions(&self) -> Vec<(QueueId, PartitionId)> {
        partitions_of(self.entries.iter())
    }

    /// The partitions where an earlier attempt stored messages and its answer was lost: that
    /// attempt woke no consumer.
    pub(super) fn stored_before(&self) -> Vec<(QueueId, PartitionId)> {
        let stored = |entry: &&Entry| matches!(entry.verdict, Some(Verdict::Stored(_)));
        partitions_of(self.decided.iter().filter(stored))
    }

    /// Which queues, by name.
    pub(super) fn queues(&self) -> Vec<&str> {
        let mut all: Vec<&str> = self.entries.iter().map(|entry| entry.item.queue.as_str()).collect();
        // Neighbours mostly share a queue: without this the sort would compare all their names.
        all.dedup();
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// The partitions of the entries, with their queues; each once if its entries are neighbours.
fn partitions_of<'e>(entries: impl Iterator<Item = &'e Entry>) -> Vec<(QueueId, PartitionId)> {
    let partitions = entries.filter_map(|entry| entry.partition.as_ref());
    let mut all: Vec<_> = partitions.map(|partition| (partition.queue, partition.id)).collect();
    all.dedup();
    all
}

/// Whether the append did nothing because a transaction id was seen before.
pub(super) fn says_seen(rows: &[Row]) -> bool {
    rows.iter().any(|row| row.get::<_, i32>(0) == 0)
}

/// Where each partition's last new message lies, from what the append returned.
fn ends(rows: &[Row]) -> HashMap<i32, i64> {
    let mut ends = HashMap::with_capacity(rows.len());
    for row in rows {
        let end = ends.entry(row.get(0)).or_insert(0);
        *end = row.get::<_, i64>(1).max(*end);
    }
    ends
}
