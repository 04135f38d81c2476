//! The upkeep tasks, step by step.
//!
//! Promises that one step reads or deletes a bounded number of rows, and that one run has a bounded
//! number of steps: a mark says where the next run goes on.

use std::sync::atomic::Ordering;

use reveille_wake::Cause;
use tracing::error;

use super::Upkeep;
use crate::database::{Connection, DatabaseError};
use crate::messages::context::MessagesContext;
use crate::messages::ids::{GroupId, PartitionId, QueueId};
use crate::messages::statements::{FORGET_KEYS, LEFTOVERS, ORPHANS, RECONCILE, RETIRE, SWEEP};

/// How many steps one run has.
const STEPS_MAX: usize = 200;
/// How many partitions one step reads.
const PARTITIONS: i64 = 1000;
/// How many rows one step deletes.
const ROWS: i64 = 2000;
/// How many rows of each table one step removes of a deleted queue.
const LEFT_AT_ONCE: i32 = 1000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UpkeepTask {
    /// Retires messages that need not be kept, and frees their space.
    Retention,
    /// Forgets transaction ids whose window is over.
    Dedup,
    /// Finds stranded messages, and marks their partitions ready.
    Reconcile,
    /// Removes the remaining rows of deleted queues and groups.
    Leftovers,
}

impl UpkeepTask {
    pub(super) const ALL: [Self; 4] = [Self::Retention, Self::Dedup, Self::Reconcile, Self::Leftovers];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Retention => "retention",
            Self::Dedup => "dedup",
            Self::Reconcile => "reconcile",
            Self::Leftovers => "leftovers",
        }
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|task| task.name() == name)
    }

    /// One run, from a mark on. Returns where the next run goes on, if there is more.
    pub(super) async fn run(
        self,
        context: &MessagesContext,
        connection: &Connection,
        from: i32,
        done: &mut Upkeep,
    ) -> Result<Option<i32>, DatabaseError> {
        let mut mark = from;
        for _ in 0..STEPS_MAX {
            let next = match self {
                Self::Retention => retain(connection, mark, done).await?,
                Self::Dedup => forget(connection, mark, done).await?,
                Self::Reconcile => reconcile(context, connection, mark, done).await?,
                Self::Leftovers => clear(connection, mark, done).await?,
            };
            match next {
                Some(next) => mark = next,
                None => return Ok(None),
            }
        }
        Ok(Some(mark))
    }
}

/// Retires, then frees space. The mark stays if there is more to free than one step may.
async fn retain(connection: &Connection, mark: i32, done: &mut Upkeep) -> Result<Option<i32>, DatabaseError> {
    let Some(row) = connection.query_opt(&RETIRE, &[&mark, &PARTITIONS]).await? else { return Ok(None) };
    done.retired += count(&row, "messages");
    let Some(row) = connection.query_opt(&SWEEP, &[&mark, &PARTITIONS, &ROWS]).await? else { return Ok(None) };
    done.segments += count(&row, "segments");
    Ok(Some(if row.get("more") { mark } else { row.get("last") }))
}

async fn forget(connection: &Connection, mark: i32, done: &mut Upkeep) -> Result<Option<i32>, DatabaseError> {
    let row = connection.query_opt(&FORGET_KEYS, &[&(ROWS * 5)]).await?;
    let keys = row.map_or(0, |row| count(&row, "rows"));
    done.keys += keys;
    Ok((keys >= ROWS.unsigned_abs() * 5).then_some(mark))
}

async fn reconcile(
    context: &MessagesContext,
    connection: &Connection,
    mark: i32,
    done: &mut Upkeep,
) -> Result<Option<i32>, DatabaseError> {
    let mut last = None;
    for row in connection.query(&RECONCILE, &[&mark, &PARTITIONS]).await? {
        let partition: i32 = row.get("partition");
        let (queue, group): (Option<i32>, Option<i32>) = (row.get("queue"), row.get("grp"));
        let (Some(queue), Some(group)) = (queue, group) else {
            last = Some(partition);
            continue;
        };
        error!(
            queue,
            partition,
            group,
            "found undelivered messages that no consumer would be woken for, and marked them ready: \
             this is a bug in Reveille, please report it"
        );
        done.repairs += 1;
        context.tally.repairs.fetch_add(1, Ordering::Relaxed);
        let partition = Some(PartitionId(partition));
        context.notifier.freed_by(QueueId(queue), GroupId(group), partition, Cause::Heartbeat);
    }
    Ok(last)
}

/// Removes the cursors of deleted groups, partition by partition; then the rows of deleted queues,
/// a bounded number with every step.
async fn clear(connection: &Connection, mark: i32, done: &mut Upkeep) -> Result<Option<i32>, DatabaseError> {
    if let Some(row) = connection.query_opt(&ORPHANS, &[&mark, &PARTITIONS]).await? {
        done.leftovers += count(&row, "cursors");
        return Ok(row.get("last"));
    }
    let row = connection.query_opt(&LEFTOVERS, &[&LEFT_AT_ONCE]).await?;
    let rows = row.map_or(0, |row| count(&row, "rows"));
    done.leftovers += rows;
    Ok((rows > 0).then_some(mark))
}

fn count(row: &tokio_postgres::Row, column: &str) -> u64 {
    u64::try_from(row.get::<_, i64>(column)).unwrap_or(0)
}
