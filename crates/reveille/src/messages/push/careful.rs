//! The careful way of a flush: take the heads, look, then append, all in one transaction.
//!
//! Only with the heads held do answers stay true: which transaction ids were seen before, what foreign transactions pushed
//! earlier, and whether an earlier attempt, whose answer was lost, took effect.

use std::collections::HashMap;

use uuid::Uuid;

use super::entry::{Entry, Verdict};
use super::lot::{Arrays, Lot, ends, says_seen};
use crate::database::{Connection, DatabaseError, Transaction};
use crate::messages::ground::Ground;
use crate::messages::ids::MessageId;
use crate::messages::outbox;
use crate::messages::statements::{APPEND, BUFFER, DUPLICATES, HAPPENED, LOCK_HEADS, PUSH_PAUSED};

/// Whether it was done; otherwise a partition is gone, or its queue is not what it was.
pub(super) async fn append(
    ground: &Ground,
    connection: &mut Connection,
    entries: &mut [Entry],
    lot: &mut Lot,
) -> Result<bool, DatabaseError> {
    if is_paused(connection).await? {
        buffer(connection, entries, lot).await?;
        return Ok(true);
    }
    outbox::move_all(ground, connection, &lot.queues(entries)).await?;
    let transaction = connection.transaction().await?;
    let heads: Vec<i32> = lot.partitions(entries).iter().map(|(_, partition)| partition.0).collect();
    if !lock(&transaction, &heads).await? || !append_in(&transaction, entries, lot).await? {
        transaction.rollback().await?;
        return Ok(false);
    }
    transaction.commit_known().await?;
    Ok(true)
}

/// Take the heads, ascending. Whether all were there.
pub(super) async fn lock(transaction: &Transaction<'_>, heads: &[i32]) -> Result<bool, DatabaseError> {
    Ok(transaction.query(&LOCK_HEADS, &[&heads]).await?.len() == heads.len())
}

/// Append what is neither there nor a duplicate, in a transaction that holds the heads. Whether it was done.
pub(super) async fn append_in(
    transaction: &Transaction<'_>,
    entries: &mut [Entry],
    lot: &mut Lot,
) -> Result<bool, DatabaseError> {
    let heads: Vec<i32> = lot.partitions(entries).iter().map(|(_, partition)| partition.0).collect();
    outbox::move_into(transaction, &heads).await?;
    if lot.is_doubtful(entries) {
        find_happened(transaction, entries, lot).await?;
    }
    find_duplicates(transaction, entries, lot).await?;
    lot.retain(|member| entries[member].verdict.is_none());
    if lot.members.is_empty() {
        return Ok(true);
    }
    let rows = {
        let arrays = Arrays::of(lot, entries);
        transaction.query(&APPEND, &arrays.params(&false)).await?
    };
    if rows.is_empty() || says_seen(&rows) {
        return Ok(false);
    }
    lot.number(entries, &ends(&rows));
    Ok(true)
}

/// What an earlier attempt stored.
async fn find_happened(transaction: &Transaction<'_>, entries: &mut [Entry], lot: &Lot) -> Result<(), DatabaseError> {
    let doubtful = || lot.members.iter().map(|member| &entries[*member]).filter(|entry| entry.doubtful);
    let partitions: Vec<i32> = doubtful().filter_map(|entry| entry.place.as_ref()).map(|place| place.id.0).collect();
    let ids: Vec<Uuid> = doubtful().map(|entry| entry.id.0).collect();
    let rows = transaction.query(&HAPPENED, &[&partitions, &ids]).await?;
    let seqs: HashMap<Uuid, i64> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    for member in &lot.members {
        let entry = &mut entries[*member];
        entry.verdict = seqs.get(&entry.id.0).map(|seq| Verdict::Stored(*seq));
    }
    Ok(())
}

/// Which transaction ids were seen before, and under which message.
async fn find_duplicates(transaction: &Transaction<'_>, entries: &mut [Entry], lot: &Lot) -> Result<(), DatabaseError> {
    let guarded = |entry: &Entry| Some((entry.place.as_ref()?.id.0, entry.guard?)).filter(|_| entry.verdict.is_none());
    let (partitions, keys): (Vec<i32>, Vec<Uuid>) =
        lot.members.iter().filter_map(|member| guarded(&entries[*member])).unzip();
    if keys.is_empty() {
        return Ok(());
    }
    let rows = transaction.query(&DUPLICATES, &[&partitions, &keys]).await?;
    let seen: HashMap<(i32, Uuid), Uuid> = rows.iter().map(|row| ((row.get(0), row.get(1)), row.get(2))).collect();
    for member in &lot.members {
        let entry = &mut entries[*member];
        let Some(first) = guarded(entry).and_then(|asked| seen.get(&asked)) else { continue };
        // Our own id: stored by an earlier attempt, and already gone from the log.
        let ours = *first == entry.id.0;
        entry.verdict = Some(if ours { Verdict::Stored(0) } else { Verdict::Duplicate(MessageId(*first)) });
    }
    Ok(())
}

async fn is_paused(connection: &Connection) -> Result<bool, DatabaseError> {
    Ok(connection.query_opt(&PUSH_PAUSED, &[]).await?.is_some_and(|row| row.get(0)))
}

/// Keep the lot until pushes go on.
async fn buffer(connection: &Connection, entries: &mut [Entry], lot: &Lot) -> Result<(), DatabaseError> {
    let payloads = lot.payloads(entries);
    let members = || lot.members.iter().map(|member| &entries[*member]);
    let queues: Vec<&str> = members().map(|entry| entry.item.queue.as_str()).collect();
    let partitions: Vec<&str> = members().map(|entry| entry.item.partition.as_str()).collect();
    let ids: Vec<Uuid> = members().map(|entry| entry.id.0).collect();
    let names: Vec<Option<&str>> = members().map(|entry| entry.item.transaction_id.as_deref()).collect();
    let traces: Vec<Option<Uuid>> = members().map(|entry| entry.item.trace_id).collect();
    let producers: Vec<Option<&str>> = members().map(|entry| entry.item.producer.as_deref()).collect();
    let doubtful = lot.is_doubtful(entries);
    let params: [crate::database::Param<'_>; 9] =
        [&queues, &partitions, &ids, &names, &payloads, &traces, &producers, &lot.key_id, &doubtful];
    connection.execute(&BUFFER, &params).await?;
    for member in &lot.members {
        entries[*member].verdict = Some(Verdict::Buffered);
    }
    Ok(())
}
