//! Plans a flush: decides, before anything is stored, which entries can be stored and where.
//!
//! Promises that after the plan an entry has one of three: a partition in a queue of the plan; a
//! verdict; or neither, because its queue was deleted, and the next round plans for it again.
//!
//! Next: [`super::batch`], which divides the flush into statements.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::sync::Arc;

use super::create::find_partitions_again;
use super::entry::{Entry, Verdict};
use crate::database::{Connection, DatabaseError};
use crate::messages::catalog::QueueEntry;
use crate::messages::context::MessagesContext;
use crate::messages::error::MessagesError;
use crate::messages::ids::QueueId;
use crate::messages::name::QueueName;
use crate::messages::statements::WAITING;

/// The queues of a flush.
pub(super) type Queues = HashMap<QueueId, Arc<QueueEntry>>;

/// Numbers the entries, and gives a partition or a verdict to those that have neither.
pub(super) async fn plan(
    context: &MessagesContext,
    connection: &Connection,
    entries: &mut [Entry],
) -> Result<Queues, DatabaseError> {
    for (number, entry) in entries.iter_mut().enumerate() {
        entry.number = number;
    }
    find_partitions_again(context, connection, entries).await?;
    let queues = queues_of(context, connection, entries).await?;
    apply_queues(entries, &queues);
    refuse_unsealable(context, entries, &queues);
    refuse_beyond_limit(connection, entries, &queues).await?;
    find_repeats(entries);
    Ok(queues)
}

/// The queues of the entries, as far as they exist. What this process remembers of the others is
/// outdated.
async fn queues_of(
    context: &MessagesContext,
    connection: &Connection,
    entries: &[Entry],
) -> Result<Queues, DatabaseError> {
    let undecided = entries.iter().filter(|entry| !entry.is_decided());
    let partitions = undecided.filter_map(|entry| entry.partition.as_ref());
    let names: HashMap<QueueId, &QueueName> =
        partitions.map(|partition| (partition.queue, &partition.queue_name)).collect();
    let found = context.catalog.queues_on(connection, names.values().copied()).await?;
    let queues: Queues = found.into_iter().map(|queue| (queue.id, queue)).collect();
    for deleted in names.into_keys().filter(|queue| !queues.contains_key(queue)) {
        context.catalog.forget_queue(deleted);
    }
    Ok(queues)
}

/// Notes which keys are checked. An entry whose queue was deleted loses its partition, and the next
/// round re-creates both.
fn apply_queues(entries: &mut [Entry], queues: &Queues) {
    // An entry that was stored in an earlier round keeps its partition: its answer names it.
    for entry in undecided(entries) {
        let queue = queue_of(entry, queues);
        entry.checked_key = queue.filter(|queue| queue.remembers).and(entry.dedup_key);
        if queue.is_none() {
            entry.partition = None;
        }
    }
}

/// Refuses entries whose queue is encrypted, if this process has no key to encrypt with.
fn refuse_unsealable(context: &MessagesContext, entries: &mut [Entry], queues: &Queues) {
    if context.seal.write_key().is_some() || !queues.values().any(|queue| queue.encrypted) {
        return;
    }
    for entry in undecided(entries) {
        if let Some(queue) = queue_of(entry, queues).filter(|queue| queue.encrypted) {
            entry.refuse(MessagesError::NoWriteKey { queue: queue.name.to_string() });
        }
    }
}

/// Refuses entries for which their queue has no room.
async fn refuse_beyond_limit(
    connection: &Connection,
    entries: &mut [Entry],
    queues: &Queues,
) -> Result<(), DatabaseError> {
    let limited: Vec<&QueueEntry> = queues.values().map(AsRef::as_ref).filter(|queue| queue.max_size > 0).collect();
    if limited.is_empty() {
        return Ok(());
    }
    let mut room = room_in(connection, &limited).await?;
    for entry in undecided(entries) {
        let Some(queue) = queue_of(entry, queues) else { continue };
        let Some(left) = room.get_mut(&queue.id) else { continue };
        // An entry that may be stored already must not be refused now.
        if *left <= 0 && !entry.doubtful {
            entry.refuse(MessagesError::QueueFull { queue: queue.name.to_string() });
        }
        *left -= 1;
    }
    Ok(())
}

/// How many messages each of these queues can still take.
async fn room_in(connection: &Connection, limited: &[&QueueEntry]) -> Result<HashMap<QueueId, i64>, DatabaseError> {
    let ids: Vec<i32> = limited.iter().map(|queue| queue.id.0).collect();
    let rows = connection.query(&WAITING, &[&ids]).await?;
    let waiting: HashMap<i32, i64> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    let left = |queue: &QueueEntry| queue.max_size.saturating_sub(waiting.get(&queue.id.0).copied().unwrap_or(0));
    Ok(limited.iter().map(|queue| (queue.id, left(queue))).collect())
}

/// Finds entries that have the transaction id of an earlier entry: only the first can be stored.
fn find_repeats(entries: &mut [Entry]) {
    let checked = entries.iter().filter(|entry| !entry.is_decided() && entry.checked_key.is_some()).count();
    if checked < 2 {
        return;
    }
    let mut first = HashMap::with_capacity(checked);
    for entry in undecided(entries) {
        let (Some(partition), Some(key)) = (&entry.partition, entry.checked_key) else { continue };
        match first.entry((partition.id, key)) {
            Slot::Vacant(slot) => _ = slot.insert(entry.number),
            Slot::Occupied(slot) => entry.verdict = Some(Verdict::Repeats(*slot.get())),
        }
    }
}

fn undecided(entries: &mut [Entry]) -> impl Iterator<Item = &mut Entry> {
    entries.iter_mut().filter(|entry| !entry.is_decided())
}

fn queue_of<'q>(entry: &Entry, queues: &'q Queues) -> Option<&'q Arc<QueueEntry>> {
    queues.get(&entry.partition.as_ref()?.queue)
}
