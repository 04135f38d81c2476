//! The outbox: pushes made inside somebody else's transaction, until they come to their partitions.
//!
//! A foreign transaction may stay open for as long as it likes; it holds no partition's head, and
//! so keeps nobody waiting. What it pushed becomes visible with its commit, and whoever takes a
//! partition's head next moves it there first: a push on its careful way, or a pop before it
//! answers that there is nothing.
//!
//! Next: [`super::pop`].

mod foreign;

use super::context::MessagesContext;
use super::ids::{PartitionId, QueueId};
use crate::database::{Connection, DatabaseError, Transaction};
use crate::messages::statements::{MOVE_PARTITIONS, MOVE_QUEUES};

/// Messages moved by one statement.
const MOVED_MAX: i32 = 2000;
/// Statements in a row; what is left then waits for the next who comes.
const MOVES_MAX: usize = 500;

/// Bring what was pushed to these queues into their logs, a bounded part of it at a time. Returns
/// the partitions that got something; whoever moves for itself alone should ring for the others.
pub(super) async fn move_ready(
    connection: &Connection,
    queues: &[&str],
) -> Result<Vec<(QueueId, PartitionId)>, DatabaseError> {
    let rows = connection.query(&MOVE_QUEUES, &[&queues, &MOVED_MAX]).await?;
    let moved = rows.iter().filter(|row| row.get::<_, i64>("moved") > 0);
    Ok(moved.map(|row| (QueueId(row.get("queue")), PartitionId(row.get("partition")))).collect())
}

/// Bring all of it, and wake whoever waits for it.
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

/// The same as part of a transaction that holds the heads of these partitions: afterwards nothing
/// that was committed before is left. Whoever waits is woken for what the transaction adds.
pub(super) async fn move_into(transaction: &Transaction<'_>, partitions: &[i32]) -> Result<(), DatabaseError> {
    loop {
        let rows = transaction.query(&MOVE_PARTITIONS, &[&partitions, &MOVED_MAX]).await?;
        if rows.iter().map(|row| row.get::<_, i64>("taken")).sum::<i64>() < MOVED_MAX.into() {
            return Ok(());
        }
    }
}
