//! One search: its targets, and from which due time on each group is read.
//!
//! A search marks partitions with new messages ready, claims ready ones, and reads when each target
//! is due next. Owns the first and the last statement of the three. Promises that all three read a
//! group from the same due time on: otherwise a partition that the claim does not see would be
//! reported due again and again.
//!
//! Next: [`super::super::low_water`], where that due time comes from.

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

#[derive(Debug)]
pub(super) struct Search {
    pub(super) targets: Vec<Target>,
    /// For each group that is searched in any partition. One partition is always read.
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
    /// What it cost to read the due times of the group.
    effort: Effort,
    /// Nothing is due before this time.
    empty_before: SystemTime,
}

impl Search {
    /// Each target once, in this order.
    pub(super) fn of(targets: impl Iterator<Item = Target>, memory: &Memory) -> Self {
        let mut seen = HashSet::new();
        let targets: Vec<Target> = targets.filter(|target| seen.insert(*target)).collect();
        let any = targets.iter().filter(|target| target.is_any_partition());
        let due_since = any.map(|target| (target.group, memory.due_since_for_search(target.group))).collect();
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

    /// Marks partitions with new messages ready, so that claims find them. Returns the queues that
    /// may have more of them.
    pub(super) async fn mark_ready(&self, connection: &Connection) -> Result<Vec<QueueId>, DatabaseError> {
        let queues = self.queues();
        let ids: Vec<i32> = queues.iter().map(|queue| queue.0).collect();
        let since = self.targets.iter().map(|target| self.due_since(*target)).min().unwrap_or(START);
        let row = connection.query_opt(&MARK_READY, &[&ids, &since]).await?;
        let marked = row.map_or(0, |row| row.get::<_, i32>(0));
        Ok(if marked >= MARKED_MAX { queues } else { Vec::new() })
    }

    /// Reads when each target has something to claim next.
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
        let number = usize::try_from(row.get::<_, i32>("position") - 1).ok()?;
        let took = Duration::try_from_secs_f64(row.get("took_s")).unwrap_or_default();
        Some(NextDue {
            target: *self.targets.get(number)?,
            exists: row.get("exists"),
            due_s: row.get("due_s"),
            plain: row.get("plain"),
            outbox: row.get("outbox"),
            effort: Effort { entries: row.get("entries"), took },
            empty_before: row.get("empty_before"),
        })
    }

    /// Remembers what it cost to read groups from the start.
    pub(super) fn remember_costs(&self, memory: &mut Memory, next: &[NextDue]) {
        let from_start = |next: &&NextDue| next.target.is_any_partition() && self.due_since(next.target) == START;
        for NextDue { target, effort, empty_before, .. } in next.iter().filter(from_start) {
            memory.searched_from_start(target.group, *effort, *empty_before);
        }
    }

    /// A group that was not read from the start is due again when it must be: otherwise no round
    /// would come back for what was not read.
    pub(super) fn come_back_for_the_start(&self, memory: &Memory, next: &mut [NextDue]) {
        for next in next.iter_mut().filter(|next| self.due_since(next.target) != START) {
            let wait = memory.full_search_in(next.target.group).as_secs_f64();
            next.due_s = Some(next.due_s.map_or(wait, |due_s| due_s.min(wait)));
        }
    }
}
