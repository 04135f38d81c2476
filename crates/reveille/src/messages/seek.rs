//! Moves a group to another position in its queue.
//!
//! Promises that leases where the group was moved are lost, that partitions with messages to read
//! again are claimable and wake the group, and that a position which is not kept any more becomes
//! the first that is; the answer counts these.

use std::time::SystemTime;

use reveille_wake::Cause;

use super::Messages;
use super::catalog::NamedQueue;
use super::error::MessagesError;
use super::ids::{GroupId, PartitionId, QueueId};
use super::name::{GroupName, PartitionName, QueueName};
use super::page::moment;
use super::statements::{GROUP_QUEUES, SEEK};
use crate::database::Param;

/// In how many partitions one commit moves the group.
const SOUGHT_AT_ONCE: i32 = 1000;

/// Where to move a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeekTo {
    /// The first message that is kept.
    Beginning,
    /// Behind the last message: the group gets only messages pushed from now on.
    End,
    /// The first message that was pushed at this time or later.
    Time(SystemTime),
    /// The message after this sequence: everything up to it counts as settled. Zero is the
    /// beginning.
    After(i64),
}

/// How a seek ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Sought {
    /// In how many partitions the group was moved.
    pub partitions: u64,
    /// In how many of them the position is not kept any more, or does not exist yet, so that the
    /// nearest one was taken.
    pub clamped: u64,
}

/// A position, as the parameters of the statement.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target {
    place: &'static str,
    at: Option<SystemTime>,
    seq: Option<i64>,
}

impl Target {
    /// Where the group began.
    pub(super) const SUBSCRIPTION: Self = Self::named("subscription");

    const fn named(place: &'static str) -> Self {
        Self { place, at: None, seq: None }
    }
}

impl From<SeekTo> for Target {
    fn from(to: SeekTo) -> Self {
        match to {
            SeekTo::Beginning => Self::named("beginning"),
            SeekTo::End => Self::named("end"),
            SeekTo::Time(time) => Self { at: Some(moment(time)), ..Self::named("time") },
            SeekTo::After(seq) => Self { seq: Some(seq), ..Self::named("sequence") },
        }
    }
}

/// A group of one queue.
#[derive(Debug, Clone)]
pub(super) struct GroupEntry {
    pub(super) id: GroupId,
    pub(super) queue: QueueId,
    pub(super) queue_name: QueueName,
}

impl Messages {
    /// Move a group, in one partition of the queue or in all of them. Leases there are lost, and
    /// waiting consumers are woken.
    pub async fn seek(
        &self,
        queue: &QueueName,
        group: &GroupName,
        partition: Option<&PartitionName>,
        to: SeekTo,
    ) -> Result<Sought, MessagesError> {
        let context = &self.parts.context;
        let entry = self.group_of(queue, group).await?;
        let partition = match partition {
            Some(name) => {
                let within = NamedQueue { id: entry.queue, name: queue };
                let found = context.catalog.find_partition_of(&context.database, within, name).await?;
                let missing = || MessagesError::NoPartition { partition: name.to_string() };
                Some(found.ok_or_else(missing)?.id)
            }
            None => None,
        };
        if let SeekTo::After(seq) = to
            && seq < 0
        {
            let (what, allowed) = ("a sequence to seek", "zero or more");
            return Err(MessagesError::OutOfRange { what, allowed, given: seq.to_string() });
        }
        self.move_group(&entry, partition, Target::from(to)).await
    }

    pub(super) async fn group_of(&self, queue: &QueueName, group: &GroupName) -> Result<GroupEntry, MessagesError> {
        let context = &self.parts.context;
        let found = self.groups_named(Some(queue), group).await?.pop();
        if let Some(entry) = found {
            return Ok(entry);
        }
        let known = context.catalog.queue_now(&*context.database.administer().await?, queue).await?;
        Err(match known {
            Some(_) => MessagesError::NoGroup { group: group.to_string() },
            None => MessagesError::NoQueue { queue: queue.to_string() },
        })
    }

    /// A group in one queue, or in every queue that knows it.
    pub(super) async fn groups_named(
        &self,
        queue: Option<&QueueName>,
        group: &GroupName,
    ) -> Result<Vec<GroupEntry>, MessagesError> {
        let connection = self.parts.context.database.administer().await?;
        let rows = connection.query(&GROUP_QUEUES, &[&queue.map(QueueName::as_str), &group.as_str()]).await?;
        let entry = |row: &tokio_postgres::Row| {
            let queue_name = QueueName::new(row.get::<_, String>("queue_name"))?;
            Ok(GroupEntry { id: GroupId(row.get("id")), queue: QueueId(row.get("queue")), queue_name })
        };
        rows.iter().map(entry).collect()
    }

    pub(super) async fn move_group(
        &self,
        group: &GroupEntry,
        partition: Option<PartitionId>,
        to: Target,
    ) -> Result<Sought, MessagesError> {
        let context = &self.parts.context;
        let connection = context.database.administer().await?;
        let only = partition.map(|partition| partition.0);
        let Target { place, at, seq } = to;
        let mut sought = Sought::default();
        let mut after = 0;
        loop {
            let params: [Param<'_>; 7] = [&group.id.0, &only, &after, &SOUGHT_AT_ONCE, &place, &at, &seq];
            let rows = connection.query(&SEEK, &params).await?;
            sought.partitions += rows.len() as u64;
            sought.clamped += rows.iter().filter(|row| row.get("clamped")).count() as u64;
            if rows.iter().any(|row| row.get("more")) {
                context.notifier.freed_by(group.queue, group.id, partition, Cause::Sought);
            }
            match rows.last() {
                Some(row) if rows.len() == SOUGHT_AT_ONCE.unsigned_abs() as usize => after = row.get("partition"),
                _ => return Ok(sought),
            }
        }
    }
}
