//! Pushes as part of a transaction that also settles.
//!
//! Promises that nothing is created inside the transaction: a new partition would block every other
//! creator until its end. So names are resolved before it begins. Then [`Prepared::append`] locks
//! the partition rows, before the transaction locks any cursor.
//!
//! Next: [`crate::messages::transaction`], which opens and commits the transaction.

use super::batch::Layout;
use super::entry::{Entry, Verdict};
use super::item::{PushItem, Pushed};
use super::{careful, flush, plan};
use crate::database::{Connection, DatabaseError, Transaction};
use crate::messages::context::MessagesContext;
use crate::messages::error::MessagesError;
use crate::messages::ids::MessageId;

/// Pushes that were checked and laid out, ready to be appended.
pub(in crate::messages) struct Prepared {
    layout: Layout,
}

/// Checks the items and finds their partitions. An item that cannot be stored fails the whole.
pub(in crate::messages) async fn prepare(
    context: &MessagesContext,
    connection: &Connection,
    items: Vec<PushItem>,
) -> Result<Prepared, MessagesError> {
    let checked = items.into_iter().map(|item| Entry::checked(item, context.options.payload_bytes_max));
    let mut entries: Vec<Entry> = checked.collect::<Result<_, _>>()?;
    let queues = plan::plan(context, connection, &mut entries).await?;
    let layout = Layout::of(context, entries, &queues);
    match layout.first_refusal() {
        Some(refusal) => Err(refusal.clone()),
        None => Ok(Prepared { layout }),
    }
}

impl Prepared {
    /// Appends everything. Returns `false` if a queue was deleted meanwhile: then the caller rolls
    /// back, prepares again, and begins a new transaction.
    pub(in crate::messages) async fn append(&mut self, transaction: &Transaction<'_>) -> Result<bool, DatabaseError> {
        let batches = &mut self.layout.batches;
        let mut partitions: Vec<i32> = batches.iter().flat_map(careful::partition_ids).collect();
        partitions.sort_unstable();
        if self.layout.entries().any(|entry| entry.partition.is_none())
            || !careful::lock(transaction, &partitions).await?
        {
            return Ok(false);
        }
        for batch in &mut self.layout.batches {
            if !careful::append_in(transaction, batch).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What this process remembers of their queues is outdated: without this, another attempt would
    /// find the same.
    pub(in crate::messages) fn forget_partitions(&mut self, context: &MessagesContext) {
        for batch in &mut self.layout.batches {
            batch.forget_partitions(context);
        }
    }

    /// The first push whose transaction id was seen before, earlier or among these pushes, and the
    /// message that came first.
    pub(in crate::messages) fn first_duplicate(&self) -> Option<(usize, MessageId)> {
        let is_duplicate = |entry: &&Entry| matches!(entry.verdict, Some(Verdict::Duplicate(_) | Verdict::Repeats(_)));
        let first = self.layout.entries().filter(is_duplicate).min_by_key(|entry| entry.number)?;
        match first.verdict {
            Some(Verdict::Duplicate(of)) => Some((first.number, of)),
            Some(Verdict::Repeats(original)) => Some((first.number, self.layout.entry(original)?.id)),
            _ => None,
        }
    }

    /// The transaction was committed: wakes the consumers, and returns what was stored, in the
    /// order of the items.
    pub(in crate::messages) fn committed(self, context: &MessagesContext) -> Vec<Result<Pushed, MessagesError>> {
        for batch in &self.layout.batches {
            flush::wake(context, &batch.partitions());
        }
        flush::answers(self.layout.into_entries())
    }
}
