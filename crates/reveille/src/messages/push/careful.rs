//! The careful append: lock the partition rows, check, then append, all in one transaction.
//!
//! Three facts stay true only while the partition rows are locked: which transaction ids were seen
//! before, which messages wait in the outbox, and whether an earlier attempt that seemed to fail
//! took effect.
//!
//! Next: [`super::flush`], which says when an append must be careful.

use std::collections::HashMap;

use uuid::Uuid;

use super::batch::{PushBatch, says_seen};
use super::columns::Columns;
use super::entry::{Entry, Verdict};
use crate::database::{Connection, DatabaseError, Param, Transaction};
use crate::messages::context::MessagesContext;
use crate::messages::ids::MessageId;
use crate::messages::outbox;
use crate::messages::statements::{APPEND, BUFFER, DUPLICATES, HAPPENED, LOCK_PARTITION_ROWS, PUSH_PAUSED};

/// Appends the batch. Returns `false` if nothing was appended and the flush must plan again.
pub(super) async fn append(
    context: &MessagesContext,
    connection: &mut Connection,
    batch: &mut PushBatch,
) -> Result<bool, DatabaseError> {
    if is_paused(connection).await? {
        return keep_until_resumed(connection, batch).await;
    }
    outbox::move_all(context, connection, &batch.queues()).await?;
    let transaction = connection.transaction().await?;
    if !lock(&transaction, &partition_ids(batch)).await? || !append_in(&transaction, batch).await? {
        transaction.rollback().await?;
        return Ok(false);
    }
    transaction.commit_known().await?;
    Ok(true)
}

/// Locks the partition rows, ascending. Returns whether all exist.
pub(super) async fn lock(transaction: &Transaction<'_>, partitions: &[i32]) -> Result<bool, DatabaseError> {
    Ok(transaction.query(&LOCK_PARTITION_ROWS, &[&partitions]).await?.len() == partitions.len())
}

/// Appends the entries that are neither stored nor duplicates, in a transaction that holds the
/// partition rows. Returns `false` if nothing was appended and the caller must plan again.
pub(super) async fn append_in(transaction: &Transaction<'_>, batch: &mut PushBatch) -> Result<bool, DatabaseError> {
    outbox::move_into(transaction, &partition_ids(batch)).await?;
    if batch.is_doubtful() {
        find_happened(transaction, batch).await?;
    }
    find_duplicates(transaction, batch).await?;
    batch.set_decided_aside();
    if batch.entries().is_empty() {
        return Ok(true);
    }
    let rows = transaction.query(&APPEND, &Columns::of(batch).params(&false)).await?;
    if rows.is_empty() || says_seen(&rows) {
        return Ok(false);
    }
    batch.stored(&rows);
    Ok(true)
}

/// The partitions whose rows the append locks.
pub(super) fn partition_ids(batch: &PushBatch) -> Vec<i32> {
    batch.partitions().iter().map(|(_, partition)| partition.0).collect()
}

/// Finds the entries that an earlier attempt stored.
async fn find_happened(transaction: &Transaction<'_>, batch: &mut PushBatch) -> Result<(), DatabaseError> {
    let doubtful = || batch.entries().iter().filter(|entry| entry.doubtful);
    let partitions: Vec<i32> =
        doubtful().filter_map(|entry| entry.partition.as_ref()).map(|partition| partition.id.0).collect();
    let ids: Vec<Uuid> = doubtful().map(|entry| entry.id.0).collect();
    let rows = transaction.query(&HAPPENED, &[&partitions, &ids]).await?;
    let seqs: HashMap<Uuid, i64> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    for entry in batch.entries_mut() {
        entry.verdict = seqs.get(&entry.id.0).map(|seq| Verdict::Stored(*seq));
    }
    Ok(())
}

/// Finds the entries whose transaction ids were seen before, and the first message of each id.
async fn find_duplicates(transaction: &Transaction<'_>, batch: &mut PushBatch) -> Result<(), DatabaseError> {
    let checked =
        |entry: &Entry| Some((entry.partition.as_ref()?.id.0, entry.checked_key?)).filter(|_| !entry.is_decided());
    let (partitions, keys): (Vec<i32>, Vec<Uuid>) = batch.entries().iter().filter_map(checked).unzip();
    if keys.is_empty() {
        return Ok(());
    }
    let rows = transaction.query(&DUPLICATES, &[&partitions, &keys]).await?;
    let seen: HashMap<(i32, Uuid), Uuid> = rows.iter().map(|row| ((row.get(0), row.get(1)), row.get(2))).collect();
    for entry in batch.entries_mut() {
        let Some(first) = checked(entry).and_then(|key| seen.get(&key)) else { continue };
        // Its own id: an earlier attempt stored it, and it was removed from the log since.
        let ours = *first == entry.id.0;
        entry.verdict = Some(if ours { Verdict::Stored(0) } else { Verdict::Duplicate(MessageId(*first)) });
    }
    Ok(())
}

async fn is_paused(connection: &Connection) -> Result<bool, DatabaseError> {
    Ok(connection.query_opt(&PUSH_PAUSED, &[]).await?.is_some_and(|row| row.get(0)))
}

/// Keeps the batch in the outbox until the pause ends, except entries that an earlier attempt
/// stored before the pause.
async fn keep_until_resumed(connection: &mut Connection, batch: &mut PushBatch) -> Result<bool, DatabaseError> {
    if batch.is_doubtful() && !find_happened_alone(connection, batch).await? {
        return Ok(false);
    }
    batch.set_decided_aside();
    if !batch.entries().is_empty() {
        put_into_outbox(connection, batch).await?;
    }
    Ok(true)
}

/// Finds the entries that an earlier attempt stored, and writes nothing. Returns `false` if a
/// partition is gone.
async fn find_happened_alone(connection: &mut Connection, batch: &mut PushBatch) -> Result<bool, DatabaseError> {
    let transaction = connection.transaction().await?;
    // While the partition rows are locked, the earlier attempt has ended one way or the other.
    let locked = lock(&transaction, &partition_ids(batch)).await?;
    if locked {
        find_happened(&transaction, batch).await?;
    }
    transaction.rollback().await?;
    Ok(locked)
}

async fn put_into_outbox(connection: &Connection, batch: &mut PushBatch) -> Result<(), DatabaseError> {
    let entries = || batch.entries().iter();
    let queues: Vec<&str> = entries().map(|entry| entry.item.queue.as_str()).collect();
    let partitions: Vec<&str> = entries().map(|entry| entry.item.partition.as_str()).collect();
    let ids: Vec<Uuid> = entries().map(|entry| entry.id.0).collect();
    let names: Vec<Option<&str>> = entries().map(|entry| entry.item.transaction_id.as_deref()).collect();
    let payloads: Vec<&[u8]> = entries().map(Entry::stored_payload).collect();
    let traces: Vec<Option<Uuid>> = entries().map(|entry| entry.item.trace_id).collect();
    let producers: Vec<Option<&str>> = entries().map(|entry| entry.item.producer.as_deref()).collect();
    let params: [Param<'_>; 9] =
        [&queues, &partitions, &ids, &names, &payloads, &traces, &producers, &batch.key_id, &batch.is_doubtful()];
    connection.execute(&BUFFER, &params).await?;
    for entry in batch.entries_mut() {
        entry.verdict = Some(Verdict::Buffered);
    }
    Ok(())
}
