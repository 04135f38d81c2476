//! The outbox: messages pushed inside a caller's transaction, until they are moved to their
//! partitions.
//!
//! Owns the statements that move them. Promises that a caller's transaction delays nobody, however
//! long it stays open: it locks no partition row. Its messages become visible with its commit. The
//! next careful push to the partition, or the next pop that finds nothing else, moves them into the
//! partition before it goes on.
//!
//! Next: `foreign`, which writes the outbox; [`super::push`] and [`super::pop`], which move it.

mod foreign;

use super::context::MessagesContext;
use super::ids::{PartitionId, QueueId};
use crate::database::{Connection, DatabaseError, Transaction};
use crate::messages::statements::{MOVE_PARTITIONS, MOVE_QUEUES};

/// How many messages one statement moves.
const MOVED_MAX: i32 = 2000;
/// How many statements run in a row; the next push or pop moves the messages that are left.
const MOVES_MAX: usize = 500;

/// Moves a bounded part of what was pushed to these queues into their logs. Returns the partitions
/// that got messages: the caller wakes their consumers.
pub(super) async fn move_ready(
    connection: &Connection,
    queues: &[&str],
) -> Result<Vec<(QueueId, PartitionId)>, DatabaseError> {
    let rows = connection.query(&MOVE_QUEUES, &[&queues, &MOVED_MAX]).await?;
    let moved = rows.iter().filter(|row| row.get::<_, i64>("moved") > 0);
    Ok(moved.map(|row| (QueueId(row.get("queue")), PartitionId(row.get("partition")))).collect())
}

/// Moves all of it, and wakes the consumers.
pub(super) async fn move_all(
    context: &MessagesContext,
    connection: &Connection,
    queues: &[&str],
) -> Result<(), DatabaseError> {
    for _ in 0..MOVES_MAX {
        let rows = connection.query(&MOVE_QUEUES, &[&queues, &MOVED_MAX]).await?;
        for row in rows.iter().filter(|row| row.get::<_, i64>("moved") > 0) {
            context.notifier.pushed(QueueId(row.get("queue")), &[PartitionId(row.get("partition"))]);
        }
        if rows.iter().map(|row| row.get::<_, i64>("taken")).sum::<i64>() < MOVED_MAX.into() {
            break;
        }
    }
    Ok(())
}

/// The same in a transaction that holds the rows of these partitions: afterwards nothing is left
/// that was committed before. The transaction itself pushes to these partitions, so its commit
/// wakes their consumers.
pub(super) async fn move_into(transaction: &Transaction<'_>, partitions: &[i32]) -> Result<(), DatabaseError> {
    loop {
        let rows = transaction.query(&MOVE_PARTITIONS, &[&partitions, &MOVED_MAX]).await?;
        if rows.iter().map(|row| row.get::<_, i64>("taken")).sum::<i64>() < MOVED_MAX.into() {
            return Ok(());
        }
    }
}
