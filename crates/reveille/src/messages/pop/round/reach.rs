//! The targets of a search, and the two statements around its claims.
//!
//! [`Reach::mark_ready`] marks partitions with new messages ready, so that claims find them.
//! [`Reach::next_due`] reads when each target has something to claim next.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, SystemTime};

use tokio_postgres::Row;

use super::super::claim::Target;
use super::super::low_water::{Effort, START};
use super::super::memory::Memory;
use crate::database::{Connection, DatabaseError};
use crate::messages::ids::{GroupId, QueueId};
use crate::messages::statements::{DUES, MARK_READY};

/// How many partitions the database marks ready in one statement.
const MARKED_MAX: i32 = 2000;

/// The targets of a search, and from which due time on each group is read. Claims and `next_due`
/// must read from the same time: otherwise a partition that the claim does not see would be
/// reported due again and again.
#[derive(Debug)]
pub(super) struct Reach {
    pub(super) targets: Vec<Target>,
    due_since: HashMap<GroupId, SystemTime>,
}

/// When a target has something to claim.
#[derive(Debug)]
pub(super) struct NextDue {
    pub(super) target: Target,
    /// The group and its queue exist.
    pub(super) exists: bool,
    /// Seconds until something can be claimed; not positive for what can be now.
    pub(super) due_s: Option<f64>,
    /// Its queue neither delays nor expires messages.
    pub(super) plain: bool,
    /// The name of its queue, if the outbox has messages of it that are not in the log yet.
    pub(super) outbox: Option<String>,
    search: SearchCost,
}

/// What it cost to read the group's due times.
#[derive(Debug, Clone, Copy)]
struct SearchCost {
    effort: Effort,
    /// Nothing is due before this time.
    empty_before: SystemTime,
}

impl Reach {
    /// Each target once, in this order.
    pub(super) fn of(targets: impl Iterator<Item = Target>, memory: &Memory) -> Self {
        let mut seen = HashSet::new();
        let targets: Vec<Target> = targets.filter(|target| seen.insert(*target)).collect();
        let any = targets.iter().filter(|target| target.is_any_partition());
        let due_since = any.map(|target| (target.group, memory.search_from(target.group))).collect();
        Self { targets, due_since }
    }

    pub(super) fn due_since(&self, target: Target) -> SystemTime {
        let since = self.due_since.get(&target.group).copied();
        since.filter(|_| target.is_any_partition()).unwrap_or(START)
    }

    pub(super) fn queues(&self) -> Vec<QueueId> {
        let mut queues: Vec<QueueId> = self.targets.iter().map(|target| target.queue).collect();
        queues.sort_unstable();
        queues.dedup();
        queues
    }

    /// Marks partitions with new messages ready; returns the queues that may have more of them.
    pub(super) async fn mark_ready(&self, connection: &Connection) -> Result<Vec<QueueId>, DatabaseError> {
        let queues = self.queues();
        let ids: Vec<i32> = queues.iter().map(|queue| queue.0).collect();
        let since = self.targets.iter().map(|target| self.due_since(*target)).min().unwrap_or(START);
        let row = connection.query_opt(&MARK_READY, &[&ids, &since]).await?;
        let marked = row.map_or(0, |row| row.get::<_, i32>(0));
        Ok(if marked >= MARKED_MAX { queues } else { Vec::new() })
    }

    pub(super) async fn next_due(&self, connection: &Connection) -> Result<Vec<NextDue>, DatabaseError> {
        let targets = || self.targets.iter();
        let groups: Vec<i32> = targets().map(|target| target.group.0).collect();
        let partitions: Vec<Option<i32>> =
            targets().map(|target| target.partition.map(|partition| partition.0)).collect();
        let since: Vec<SystemTime> = targets().map(|target| self.due_since(*target)).collect();
        let rows = connection.query(&DUES, &[&groups, &partitions, &since]).await?;
        Ok(rows.iter().filter_map(|row| self.read(row)).collect())
    }

    fn read(&self, row: &Row) -> Option<NextDue> {
        let number = usize::try_from(row.get::<_, i32>("o") - 1).ok()?;
        let took = Duration::try_from_secs_f64(row.get("took_s")).unwrap_or_default();
        Some(NextDue {
            target: *self.targets.get(number)?,
            exists: row.get("known"),
            due_s: row.get("due_s"),
            plain: row.get("plain"),
            outbox: row.get("sent"),
            search: SearchCost { effort: Effort { entries: row.get("entries"), took }, empty_before: row.get("place") },
        })
    }

    /// Notes in the memory what the searches cost. A search that did not read from the start is due
    /// again when one must: otherwise no round would come back for what it did not read.
    pub(super) fn note_search_costs(&self, memory: &mut Memory, next: &mut [NextDue]) {
        for next in next {
            let group = next.target.group;
            if self.due_since(next.target) != START {
                let wait = memory.full_search_in(group).as_secs_f64();
                next.due_s = Some(next.due_s.map_or(wait, |due_s| due_s.min(wait)));
            } else if next.target.is_any_partition() {
                memory.searched_from_start(group, next.search.effort, next.search.empty_before);
            }
        }
    }
}
