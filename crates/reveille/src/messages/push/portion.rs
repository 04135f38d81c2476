//! Sends a large call in portions, one after the other.
//!
//! Promises that the pushes of other callers come in between two portions, and that the order
//! within the call is kept: after a portion that could not be stored, the following portions are
//! not sent.
//!
//! Next: [`super::flush`].

use std::collections::HashSet;

use super::entry::Entry;
use super::flush::Flusher;
use super::item::Pushed;
use crate::batcher::Batcher;
use crate::database::DatabaseError;
use crate::messages::error::MessagesError;

/// How many entries a portion has at most: as many as one flush takes.
const ENTRIES_MAX: usize = 4096;
/// How many partitions a portion has at most. The cost of an append depends mostly on its
/// partitions, and so many take some 30 ms.
const PARTITIONS_MAX: usize = 256;

/// Sends all entries, and answers in their order.
pub(super) async fn send_in_portions(
    batcher: &Batcher<Flusher>,
    mut entries: Vec<Entry>,
) -> Vec<Result<Pushed, MessagesError>> {
    let mut answers = Vec::with_capacity(entries.len());
    while !entries.is_empty() {
        let rest = entries.split_off(portion(&entries));
        let answered = batcher.send(entries).await;
        let failed = answered.iter().find_map(|answer| answer.as_ref().err().filter(|error| stops(error)).cloned());
        answers.extend(answered.into_iter().map(|answer| answer.and_then(|stored| stored)));
        entries = rest;
        if let Some(error) = failed {
            answers.extend(entries.drain(..).map(|_| Err(error.clone())));
        }
    }
    answers
}

/// How many entries the next portion has.
fn portion(entries: &[Entry]) -> usize {
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
pub(super) fn stops(error: &MessagesError) -> bool {
    !matches!(error, MessagesError::Database(DatabaseError::Data { .. }))
}
