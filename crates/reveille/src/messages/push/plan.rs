//! What a flush consists of: every entry finds its partition, or is refused, and the rest is laid out in lots.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::sync::Arc;

use super::entry::{Entry, Verdict};
use super::lot::Lot;
use crate::database::{Connection, DatabaseError};
use crate::messages::catalog::{PartitionPath, QueueEntry};
use crate::messages::error::MessagesError;
use crate::messages::ground::Ground;
use crate::messages::ids::QueueId;
use crate::messages::name::QueueName;
use crate::messages::statements::WAITING;

/// Slices of arrays are found by walking them: more partitions than this in one statement cost more than another statement.
const PARTITIONS_MAX: usize = 1024;

type Queues = HashMap<QueueId, Arc<QueueEntry>>;

/// The lots of all entries that have no verdict yet.
pub(super) async fn plan(
    ground: &Ground,
    connection: &Connection,
    entries: &mut [Entry],
) -> Result<Vec<Lot>, DatabaseError> {
    place(ground, connection, entries).await?;
    let queues = look_up(ground, connection, entries).await?;
    refuse(ground, connection, entries, &queues).await?;
    find_twins(entries);
    Ok(lots(ground, entries, &queues))
}

/// Every entry gets its partition. Most have theirs already; of the others it was deleted since, and is made anew.
async fn place(ground: &Ground, connection: &Connection, entries: &mut [Entry]) -> Result<(), DatabaseError> {
    let unknown = ground.recall(entries);
    if unknown.is_empty() {
        return Ok(());
    }
    let wanted: Vec<PartitionPath> = unknown.iter().map(|index| entries[*index].path()).collect();
    let made = ground.catalog.make(connection, &wanted).await?;
    // Whoever waits for a queue or a partition that was not there looks for its name again.
    ground.bell.new_queue();
    for (index, place) in unknown.into_iter().zip(made) {
        entries[index].place = place;
    }
    Ok(())
}

/// The queues of the entries. One that is gone leaves its entries without a place: the next round makes it anew.
async fn look_up(ground: &Ground, connection: &Connection, entries: &mut [Entry]) -> Result<Queues, DatabaseError> {
    let places = || entries.iter().filter(|entry| entry.verdict.is_none()).filter_map(|entry| entry.place.as_ref());
    let named: HashMap<QueueId, &QueueName> = places().map(|place| (place.queue, &place.queue_name)).collect();
    let found = ground.catalog.queues_on(connection, named.into_values()).await?;
    let queues: Queues = found.into_iter().map(|queue| (queue.id, queue)).collect();
    for place in places().filter(|place| !queues.contains_key(&place.queue)) {
        ground.catalog.forget_queue(place.queue);
    }
    // What was stored in an earlier round keeps its place: its answer names it.
    for entry in entries.iter_mut().filter(|entry| entry.verdict.is_none()) {
        let queue = entry.place.as_ref().and_then(|place| queues.get(&place.queue));
        entry.guard = queue.filter(|queue| queue.remembers).and(entry.key);
        if queue.is_none() {
            entry.place = None;
        }
    }
    Ok(queues)
}

/// What cannot be stored, for its queue's sake.
async fn refuse(
    ground: &Ground,
    connection: &Connection,
    entries: &mut [Entry],
    queues: &Queues,
) -> Result<(), DatabaseError> {
    let mut room = room(connection, queues).await?;
    let unsealable = |queue: &QueueEntry| queue.encrypted && ground.seal.write_key().is_none();
    if room.is_empty() && !queues.values().any(|queue| unsealable(queue)) {
        return Ok(());
    }
    for entry in entries.iter_mut().filter(|entry| entry.verdict.is_none()) {
        let Some(queue) = entry.place.as_ref().and_then(|place| queues.get(&place.queue)) else { continue };
        if unsealable(queue) {
            entry.verdict = Some(Verdict::Refused(MessagesError::NoWriteKey { queue: queue.name.to_string() }));
        } else if let Some(left) = room.get_mut(&queue.id) {
            // What may be stored already must not be refused now.
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

/// Of several entries with the same transaction id, the first is stored, if any.
fn find_twins(entries: &mut [Entry]) {
    let guarded = entries.iter().filter(|entry| entry.verdict.is_none() && entry.guard.is_some()).count();
    if guarded < 2 {
        return;
    }
    let mut first = HashMap::with_capacity(guarded);
    for (index, entry) in entries.iter_mut().enumerate().filter(|(_, entry)| entry.verdict.is_none()) {
        let (Some(place), Some(key)) = (&entry.place, entry.guard) else { continue };
        match first.entry((place.id, key)) {
            Slot::Vacant(slot) => {
                slot.insert(index);
            }
            Slot::Occupied(slot) => entry.verdict = Some(Verdict::Twin(*slot.get())),
        }
    }
}

/// Plain entries apart from sealed ones, partitions ascending in each lot.
fn lots(ground: &Ground, entries: &mut [Entry], queues: &Queues) -> Vec<Lot> {
    let mut members: Vec<(bool, i32, usize)> = Vec::with_capacity(entries.len());
    for (index, entry) in entries.iter().enumerate().filter(|(_, entry)| entry.verdict.is_none()) {
        if let Some(place) = &entry.place {
            let sealed = queues.get(&place.queue).is_some_and(|queue| queue.encrypted);
            members.push((sealed, place.id.0, index));
        }
    }
    members.sort_unstable();
    let mut lots = Vec::new();
    for alike in members.chunk_by(|one, other| one.0 == other.0) {
        let key_id = ground.seal.write_key().filter(|_| alike[0].0);
        let partitions: Vec<_> = alike.chunk_by(|one, other| one.1 == other.1).collect();
        for some in partitions.chunks(PARTITIONS_MAX) {
            let members = some.iter().copied().flatten().map(|(_, _, index)| *index).collect();
            lots.push(Lot::sealed(ground, entries, members, key_id));
        }
    }
    lots
}
