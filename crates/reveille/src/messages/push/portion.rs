//! Sends a large call in portions, one after the other.
//!
//! Promises that the items of other callers come in between two portions, and that the order within
//! the call is kept: after a portion that failed, the following portions are not sent. New names
//! are sent in portions as well.
//!
//! Next: [`super::flush`].

use std::collections::HashSet;

use super::entry::Entry;
use crate::batcher::{Batcher, Work};
use crate::database::DatabaseError;
use crate::messages::error::MessagesError;

/// How many entries a portion has at most: as many as one flush takes.
const ENTRIES_MAX: usize = 4096;
/// How many partitions a portion has at most. The cost of an append depends mostly on its
/// partitions, and so many take some 30 ms.
const PARTITIONS_MAX: usize = 256;

/// Sends all items, and answers in their order. `size` is how many of them the next portion has.
pub(super) async fn send_in_portions<W: Work<Error = MessagesError>>(
    batcher: &Batcher<W>,
    mut items: Vec<W::Item>,
    size: fn(&[W::Item]) -> usize,
) -> Vec<Result<W::Answer, MessagesError>> {
    let mut answers = Vec::with_capacity(items.len());
    while !items.is_empty() {
        let rest = items.split_off(size(&items));
        let answered = batcher.send(items).await;
        let failed = answered.iter().find_map(|answer| answer.as_ref().err().filter(|error| stops(error)).cloned());
        answers.extend(answered);
        items = rest;
        if let Some(error) = failed {
            answers.extend(items.drain(..).map(|_| Err(error.clone())));
        }
    }
    answers
}

/// How many entries the next portion has.
pub(super) fn portion_of_entries(entries: &[Entry]) -> usize {
    if entries.len() <= PARTITIONS_MAX {
        return entries.len();
    }
    let mut partitions = HashSet::new();
    let within = entries.iter().take(ENTRIES_MAX).take_while(|entry| {
        partitions.insert(entry.partition.as_ref().map(|partition| partition.id));
        partitions.len() <= PARTITIONS_MAX
    });
    within.count().max(1)
}

/// Whether the following portions would fail as well. A value that PostgreSQL cannot hold fails
/// alone.
fn stops(error: &MessagesError) -> bool {
    !matches!(error, MessagesError::Database(DatabaseError::Data { .. }))
}
