//! Upkeep: retention, old transaction ids, repairs, leftovers; each done by one process at a time.
//!
//! Owns the upkeep tasks. Each is a row with the time it is due: a process that finds a task due
//! takes it, skipping rows that others hold, and moves the time on in the same statement; there is
//! no leader. Promises short steps, each a transaction of its own, so that no push or pop waits for
//! upkeep. Promises also to find stranded messages: each repair is counted, logged, and wakes the
//! group.
//!
//! Retired messages are gone at once, because readers begin at the partition's first sequence;
//! their space is freed here.
//!
//! Next: `task`, the steps of each task.

mod task;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::Messages;
use super::context::MessagesContext;
use super::error::MessagesError;
use super::statements::{REPORT_UPKEEP, TAKE_UPKEEP, UPKEEP_TASKS};
use crate::database::outage::warn_unless_away;
use crate::service::upkeep::{self, Next};
use task::UpkeepTask;

/// What upkeep did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Upkeep {
    /// Messages that need not be kept any more, and are not delivered from then on.
    pub retired: u64,
    /// Segments whose space was freed.
    pub segments: u64,
    /// Transaction ids whose window was over.
    pub keys: u64,
    /// Rows of deleted queues and groups.
    pub leftovers: u64,
    /// Partitions with undelivered messages that no consumer would have been woken for, counted for
    /// each group. Anything but zero is a bug in Reveille, or another program wrote into its
    /// tables.
    pub repairs: u64,
}

/// The last run of an upkeep task.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct UpkeepReport {
    /// The task.
    pub name: String,
    /// When it was done last.
    pub done_at: Option<SystemTime>,
    /// When it is due, in seconds from now; negative if it is overdue.
    pub due_s: f64,
    /// What it did, as a JSON object of numbers.
    pub figures: String,
}

/// Runs the tasks that are due, at intervals, until the queues close.
pub(super) fn start(context: &Arc<MessagesContext>) {
    let (of, interval) = (Arc::clone(context), context.options.upkeep_interval);
    upkeep::start(&context.service, interval, move || {
        let context = Arc::clone(&of);
        async move {
            do_due(&context, interval).await.unwrap_or_else(|error| {
                warn_unless_away!(&error, %error, "upkeep of the queues failed, the next run tries again");
                Next::Later
            })
        }
    });
}

/// Runs every task that is due. The next run comes soon if one of them has more to do.
async fn do_due(context: &MessagesContext, interval: Duration) -> Result<Next, MessagesError> {
    let connection = context.database.administer().await?;
    let names = UpkeepTask::ALL.map(UpkeepTask::name);
    let mut next = Next::Later;
    for _ in UpkeepTask::ALL {
        let taken = connection.query_opt(&TAKE_UPKEEP, &[&interval.as_secs_f64(), &names.as_slice()]).await?;
        let Some(row) = taken else { break };
        let Some(task) = UpkeepTask::named(row.get("name")) else { break };
        let mut done = Upkeep::default();
        let mark = i32::try_from(row.get::<_, i64>("mark")).unwrap_or(0);
        let left = task.run(context, &connection, mark, &mut done).await?;
        next = if left.is_some() { Next::Soon } else { next };
        report(&connection, task, left, &done).await?;
    }
    Ok(next)
}

async fn report(
    connection: &crate::database::Connection,
    task: UpkeepTask,
    left: Option<i32>,
    done: &Upkeep,
) -> Result<(), MessagesError> {
    let mark = left.map_or(0, i64::from);
    connection.execute(&REPORT_UPKEEP, &[&task.name(), &mark, &done.figures(), &left.is_some()]).await?;
    Ok(())
}

impl Messages {
    /// Run every upkeep task now, to its end, whether it is due or not.
    pub async fn upkeep(&self) -> Result<Upkeep, MessagesError> {
        let context = &self.parts.context;
        let connection = context.database.administer().await?;
        let mut done = Upkeep::default();
        for task in UpkeepTask::ALL {
            let mut own = Upkeep::default();
            let mut mark = Some(0);
            while let Some(from) = mark {
                mark = task.run(context, &connection, from, &mut own).await?;
            }
            report(&connection, task, None, &own).await?;
            done.add(&own);
        }
        Ok(done)
    }

    /// What the upkeep tasks did last, and when they are due.
    pub async fn upkeep_reports(&self) -> Result<Vec<UpkeepReport>, MessagesError> {
        let rows = self.parts.context.database.administer().await?.query(&UPKEEP_TASKS, &[]).await?;
        let report = |row: &tokio_postgres::Row| UpkeepReport {
            name: row.get("name"),
            done_at: row.get("done_at"),
            due_s: row.get("due_s"),
            figures: row.get("figures"),
        };
        Ok(rows.iter().map(report).collect())
    }
}

impl Upkeep {
    fn add(&mut self, other: &Self) {
        self.retired += other.retired;
        self.segments += other.segments;
        self.keys += other.keys;
        self.leftovers += other.leftovers;
        self.repairs += other.repairs;
    }

    fn figures(&self) -> String {
        let Self { retired, segments, keys, leftovers, repairs } = self;
        format!(
            r#"{{"retired":{retired},"segments":{segments},"keys":{keys},"leftovers":{leftovers},"repairs":{repairs}}}"#
        )
    }
}
