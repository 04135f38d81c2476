//! Plans a flush: finds the partition of every entry, or refuses the entry.
//!
//! Promises that after the plan every entry has a partition and a known queue, or a verdict, or
//! goes to the next round because its queue is gone.
//!
//! Next: [`super::batch`], which divides the flush into statements.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::sync::Arc;

use super::entry::{Entry, Verdict};
use crate::database::{Connection, DatabaseError};
use crate::messages::catalog::{Catalog, PartitionPath, QueueEntry};
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
    find_partitions(context, connection, entries).await?;
    let queues = look_up(context, connection, entries).await?;
    refuse(context, connection, entries, &queues).await?;
    find_repeats(entries);
    Ok(queues)
}

/// Gives every entry its partition. Most have theirs already; the partitions of the others were
/// deleted since, and are re-created.
async fn find_partitions(
    context: &MessagesContext,
    connection: &Connection,
    entries: &mut [Entry],
) -> Result<(), DatabaseError> {
    let unknown = take_cached_partitions(&context.catalog, entries);
    if unknown.is_empty() {
        return Ok(());
    }
    let wanted: Vec<PartitionPath> = unknown.iter().map(|index| entries[*index].path()).collect();
    let made = context.catalog.make(connection, &wanted).await?;
    // Pops that wait for a queue or a partition that did not exist resolve its name again.
    context.notifier.new_names();
    for (index, partition) in unknown.into_iter().zip(made) {
        entries[index].partition = partition;
    }
    Ok(())
}

/// Gives entries the partitions that this process has cached; returns the positions of the others.
pub(super) fn take_cached_partitions(catalog: &Catalog, entries: &mut [Entry]) -> Vec<usize> {
    let mut unknown = Vec::new();
    for index in 0..entries.len() {
        let (before, rest) = entries.split_at_mut(index);
        let entry = &mut rest[0];
        if entry.verdict.is_some() || entry.partition.is_some() {
            continue;
        }
        // The entries of a call often share a partition: so has the entry before perhaps. One with
        // a verdict keeps the partition of an earlier round, whose queue may have been deleted
        // since.
        let same = before.last().filter(|last| last.verdict.is_none() && last.is_for_the_same(entry));
        entry.partition = match same.and_then(|last| last.partition.clone()) {
            Some(partition) => Some(partition),
            None => catalog.recall(&entry.item.queue, &entry.item.partition),
        };
        if entry.partition.is_none() {
            unknown.push(index);
        }
    }
    unknown
}

/// The queues of the entries. The entries of a queue that is gone lose their partition: the next
/// round re-creates both.
async fn look_up(
    context: &MessagesContext,
    connection: &Connection,
    entries: &mut [Entry],
) -> Result<Queues, DatabaseError> {
    let partitions =
        || entries.iter().filter(|entry| entry.verdict.is_none()).filter_map(|entry| entry.partition.as_ref());
    let named: HashMap<QueueId, &QueueName> =
        partitions().map(|partition| (partition.queue, &partition.queue_name)).collect();
    let found = context.catalog.queues_on(connection, named.into_values()).await?;
    let queues: Queues = found.into_iter().map(|queue| (queue.id, queue)).collect();
    for partition in partitions().filter(|partition| !queues.contains_key(&partition.queue)) {
        context.catalog.forget_queue(partition.queue);
    }
    // An entry that was stored in an earlier round keeps its partition: its answer names it.
    for entry in entries.iter_mut().filter(|entry| entry.verdict.is_none()) {
        let queue = entry.partition.as_ref().and_then(|partition| queues.get(&partition.queue));
        entry.checked_key = queue.filter(|queue| queue.remembers).and(entry.dedup_key);
        if queue.is_none() {
            entry.partition = None;
        }
    }
    Ok(queues)
}

/// Refuses entries whose queue is full, or is encrypted while there is no key.
async fn refuse(
    context: &MessagesContext,
    connection: &Connection,
    entries: &mut [Entry],
    queues: &Queues,
) -> Result<(), DatabaseError> {
    let mut room = room(connection, queues).await?;
    let unsealable = |queue: &QueueEntry| queue.encrypted && context.seal.write_key().is_none();
    if room.is_empty() && !queues.values().any(|queue| unsealable(queue)) {
        return Ok(());
    }
    for entry in entries.iter_mut().filter(|entry| entry.verdict.is_none()) {
        let Some(queue) = entry.partition.as_ref().and_then(|partition| queues.get(&partition.queue)) else { continue };
        if unsealable(queue) {
            entry.verdict = Some(Verdict::Refused(MessagesError::NoWriteKey { queue: queue.name.to_string() }));
        } else if let Some(left) = room.get_mut(&queue.id) {
            // An entry that may be stored already must not be refused now.
            if *left <= 0 && !entry.doubtful {
                entry.verdict = Some(Verdict::Refused(MessagesError::QueueFull { queue: queue.name.to_string() }));
            }
            *left -= 1;
        }
    }
    Ok(())
}

/// How many messages the queues with a limit can still take.
async fn room(connection: &Connection, queues: &Queues) -> Result<HashMap<QueueId, i64>, DatabaseError> {
    let limited: Vec<i32> = queues.values().filter(|queue| queue.max_size > 0).map(|queue| queue.id.0).collect();
    if limited.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = connection.query(&WAITING, &[&limited]).await?;
    let waiting: HashMap<i32, i64> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    let left = |id: i32| {
        let id = QueueId(id);
        let limit = queues.get(&id).map_or(0, |queue| queue.max_size);
        (id, limit.saturating_sub(waiting.get(&id.0).copied().unwrap_or(0)))
    };
    Ok(limited.into_iter().map(left).collect())
}

/// Finds entries that have the transaction id of an earlier entry: only the first can be stored.
fn find_repeats(entries: &mut [Entry]) {
    let checked = entries.iter().filter(|entry| entry.verdict.is_none() && entry.checked_key.is_some()).count();
    if checked < 2 {
        return;
    }
    let mut first = HashMap::with_capacity(checked);
    for (index, entry) in entries.iter_mut().enumerate().filter(|(_, entry)| entry.verdict.is_none()) {
        let (Some(partition), Some(key)) = (&entry.partition, entry.checked_key) else { continue };
        match first.entry((partition.id, key)) {
            Slot::Vacant(slot) => {
                slot.insert(index);
            }
            Slot::Occupied(slot) => entry.verdict = Some(Verdict::Repeats(*slot.get())),
        }
    }
}
