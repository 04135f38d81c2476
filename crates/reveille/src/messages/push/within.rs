//! Pushes that are part of a larger transaction of ours.
//!
//! Names are resolved before it begins, for making a partition would block other makers until its
//! end; then [`Prepared::append`] takes the heads, which must come before any cursor.

use super::batch::Layout;
use super::entry::{Entry, Verdict};
use super::item::{PushItem, Pushed};
use super::{careful, flush, plan};
use crate::database::{Connection, DatabaseError, Transaction};
use crate::messages::context::MessagesContext;
use crate::messages::error::MessagesError;
use crate::messages::ids::MessageId;

/// Checked and laid out.
pub(in crate::messages) struct Prepared {
    layout: Layout,
}

/// Check the items and find their partitions. An item that cannot be stored fails the whole.
pub(in crate::messages) async fn prepare(
    context: &MessagesContext,
    connection: &Connection,
    items: Vec<PushItem>,
) -> Result<Prepared, MessagesError> {
    let checked = items.into_iter().map(|item| Entry::checked(item, context.options.payload_bytes_max));
    let mut entries: Vec<Entry> = checked.collect::<Result<_, _>>()?;
    let queues = plan::plan(context, connection, &mut entries).await?;
    let mut layout = Layout::of(context, entries, &queues);
    match layout.take_refusal() {
        Some(refused) => Err(refused),
        None => Ok(Prepared { layout }),
    }
}

impl Prepared {
    /// Append everything. `false` when a queue was deleted meanwhile: then roll back, prepare again
    /// and begin anew.
    pub(in crate::messages) async fn append(&mut self, transaction: &Transaction<'_>) -> Result<bool, DatabaseError> {
        let batches = &mut self.layout.batches;
        let mut heads: Vec<i32> = batches.iter().flat_map(careful::heads).collect();
        heads.sort_unstable();
        if self.layout.entries().any(|entry| entry.place.is_none()) || !careful::lock(transaction, &heads).await? {
            return Ok(false);
        }
        for batch in &mut self.layout.batches {
            if !careful::append_in(transaction, batch).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What is remembered of their queues is not true any more: without this, another attempt would
    /// find the same.
    pub(in crate::messages) fn unplace(&mut self, context: &MessagesContext) {
        for batch in &mut self.layout.batches {
            batch.unplace(context);
        }
    }

    /// The first push whose transaction id was seen before, within these or earlier, and the
    /// message that came first.
    pub(in crate::messages) fn first_duplicate(&self) -> Option<(usize, MessageId)> {
        let is_duplicate = |entry: &&Entry| matches!(entry.verdict, Some(Verdict::Duplicate(_) | Verdict::Twin(_)));
        let first = self.layout.entries().filter(is_duplicate).min_by_key(|entry| entry.number)?;
        match first.verdict {
            Some(Verdict::Duplicate(of)) => Some((first.number, of)),
            Some(Verdict::Twin(twin)) => Some((first.number, self.layout.entry(twin)?.id)),
            _ => None,
        }
    }

    /// The transaction was committed: wake whoever waits, and say what was stored, in the order of
    /// the items.
    pub(in crate::messages) fn committed(self, context: &MessagesContext) -> Vec<Result<Pushed, MessagesError>> {
        for batch in &self.layout.batches {
            flush::wake(context, &batch.partitions());
        }
        flush::answers(self.layout.into_entries())
    }
}
