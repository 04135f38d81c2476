//! Pushes that are part of a larger transaction of ours.
//!
//! Names are resolved before it begins, for making a partition would block other makers until its end; then
//! [`Prepared::append`] takes the heads, which must come before any cursor.

use super::entry::{Entry, Verdict};
use super::item::{PushItem, Pushed};
use super::lot::Lot;
use super::{careful, flush, plan};
use crate::database::{Connection, DatabaseError, Transaction};
use crate::messages::error::MessagesError;
use crate::messages::ground::Ground;
use crate::messages::ids::MessageId;

/// Checked and laid out.
pub(in crate::messages) struct Prepared {
    entries: Vec<Entry>,
    lots: Vec<Lot>,
}

/// Check the items and find their partitions. An item that cannot be stored fails the whole.
pub(in crate::messages) async fn prepare(
    ground: &Ground,
    connection: &Connection,
    items: Vec<PushItem>,
) -> Result<Prepared, MessagesError> {
    let checked = items.into_iter().map(|item| Entry::checked(item, ground.options.payload_bytes_max));
    let mut entries: Vec<Entry> = checked.collect::<Result<_, _>>()?;
    let lots = plan::plan(ground, connection, &mut entries).await?;
    match entries.iter_mut().find_map(|entry| entry.verdict.take_if(|verdict| verdict.is_refusal())) {
        Some(Verdict::Refused(refused)) => Err(refused),
        _ => Ok(Prepared { entries, lots }),
    }
}

impl Prepared {
    /// Append everything. `false` when a queue was deleted meanwhile: then roll back, prepare again and begin anew.
    pub(in crate::messages) async fn append(&mut self, transaction: &Transaction<'_>) -> Result<bool, DatabaseError> {
        let mut heads: Vec<i32> = Vec::new();
        for lot in &self.lots {
            heads.extend(lot.partitions(&self.entries).iter().map(|(_, partition)| partition.0));
        }
        heads.sort_unstable();
        if self.entries.iter().any(|entry| entry.place.is_none()) || !careful::lock(transaction, &heads).await? {
            return Ok(false);
        }
        for lot in &mut self.lots {
            if !careful::append_in(transaction, &mut self.entries, lot).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What is remembered of their queues is not true any more: without this, another attempt would find the same.
    pub(in crate::messages) fn unplace(&mut self, ground: &Ground) {
        for lot in &self.lots {
            lot.unplace(ground, &mut self.entries);
        }
    }

    /// The first push whose transaction id was seen before, within these or earlier, and the message that came first.
    pub(in crate::messages) fn first_duplicate(&self) -> Option<(usize, MessageId)> {
        self.entries.iter().enumerate().find_map(|(index, entry)| match entry.verdict {
            Some(Verdict::Duplicate(of)) => Some((index, of)),
            Some(Verdict::Twin(first)) => Some((index, self.entries[first].id)),
            _ => None,
        })
    }

    /// The transaction was committed: wake whoever waits, and say what was stored, in the order of the items.
    pub(in crate::messages) fn committed(self, ground: &Ground) -> Vec<Result<Pushed, MessagesError>> {
        for lot in &self.lots {
            flush::ring(ground, &lot.partitions(&self.entries));
        }
        flush::answers(self.entries)
    }
}
