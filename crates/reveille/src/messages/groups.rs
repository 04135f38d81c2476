//! Consumer groups for operators: how far behind they are, and how to delete them.
//!
//! Next: [`super::seek`], which moves a group.

use std::time::{Duration, SystemTime};

use tokio_postgres::Row;

use super::Messages;
use super::error::MessagesError;
use super::ids::PartitionUid;
use super::name::{GroupName, PartitionName, QueueName};
use super::page::{Page, moment};
use super::seek::{GroupEntry, Target};
use super::statements::{COUNT_WAITING, DELETE_CURSORS, FORGET_GROUP, GROUP_PARTITIONS, GROUPS, QUEUE_LAGS, SUBSCRIBE};

/// How many groups one answer has at most.
const LISTED_MAX: i64 = 10_000;
/// How many cursors one commit deletes.
const DELETED_AT_ONCE: i64 = 2000;

/// Where a group began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Began {
    /// With the oldest message that was kept.
    All,
    /// With messages pushed after its first pop.
    New,
    /// With messages pushed at this time or later.
    From(SystemTime),
}

/// How a group is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum GroupState {
    /// No message waits for it.
    Idle,
    /// Messages wait, and consumers have leases.
    Working,
    /// Messages wait, and no consumer has a lease.
    Waiting,
}

/// A group of one queue, and the messages that wait for it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroupDescription {
    /// Its queue.
    pub queue: QueueName,
    /// Its name.
    pub name: GroupName,
    /// Where it began; decided at its first pop.
    pub began: Began,
    /// When it was first seen.
    pub created_at: SystemTime,
    /// How many partitions the queue has.
    pub partitions: i64,
    /// In how many of them messages wait for the group.
    pub partitions_behind: i64,
    /// How many messages wait for it, leased ones included.
    pub lag: i64,
    /// How long the oldest of them has waited.
    pub lag_time: Duration,
    /// How many partitions are leased to its consumers.
    pub leases: i64,
    /// How it is doing.
    pub state: GroupState,
}

/// Where a group stands in one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartitionLag {
    /// The queue.
    pub queue: QueueName,
    /// The group.
    pub group: GroupName,
    /// The partition.
    pub partition: PartitionName,
    /// The public id of the partition.
    pub partition_uid: PartitionUid,
    /// The last sequence that the group has settled.
    pub settled: i64,
    /// The last sequence of the partition.
    pub newest: i64,
    /// How many messages wait for the group.
    pub lag: i64,
    /// How long the oldest of them has waited.
    pub lag_time: Duration,
    /// For how long the partition is still leased.
    pub lease: Option<Duration>,
    /// How often the first waiting message has failed.
    pub failures: i32,
    /// How often the first waiting message was claimed.
    pub deliveries: i32,
}

/// How far the groups of a queue are behind.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueLag {
    /// The queue.
    pub queue: QueueName,
    /// How many messages wait for the group that is furthest behind, leased ones included.
    pub lag: i64,
    /// How many partitions are leased, over all groups.
    pub leases: i64,
}

/// The messages that wait for a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Available {
    /// How many messages it has not settled.
    pub waiting: i64,
    /// How many of these are leased at the moment.
    pub leased: i64,
}

/// What to do with the record of where a group began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subscriptions {
    /// Keep it: the group begins again where it began at first.
    Keep,
    /// Forget it: the group is new to the queue when it pops again.
    Forget,
}

/// A deleted group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct DeletedGroup {
    /// In how many queues it was.
    pub queues: u64,
    /// In how many partitions.
    pub partitions: u64,
}

impl Messages {
    /// The groups of a queue, or of all queues, with one entry for each queue that a group reads.
    /// At most 10,000.
    pub async fn groups(
        &self,
        queue: Option<&QueueName>,
        group: Option<&GroupName>,
    ) -> Result<Vec<GroupDescription>, MessagesError> {
        self.listed_groups(queue, group, LISTED_MAX, 0).await
    }

    /// The same, a page at a time, by the names of queue and group: nothing is counted for the
    /// groups of other pages.
    pub async fn groups_page(
        &self,
        queue: Option<&QueueName>,
        group: Option<&GroupName>,
        page: Page,
    ) -> Result<Vec<GroupDescription>, MessagesError> {
        self.listed_groups(queue, group, page.limit(), page.offset()).await
    }

    async fn listed_groups(
        &self,
        queue: Option<&QueueName>,
        group: Option<&GroupName>,
        limit: i64,
        offset: i64,
    ) -> Result<Vec<GroupDescription>, MessagesError> {
        let connection = self.parts.context.database.administer().await?;
        let (queue, group) = (queue.map(QueueName::as_str), group.map(GroupName::as_str));
        let rows = connection.query(&GROUPS, &[&queue, &group, &limit, &offset]).await?;
        rows.iter().map(GroupDescription::read).collect()
    }

    /// How far groups are behind, queue by queue. Queues that have no group or do not exist are
    /// left out.
    pub async fn queue_lags(&self, queues: &[QueueName]) -> Result<Vec<QueueLag>, MessagesError> {
        let connection = self.parts.context.database.administer().await?;
        let names: Vec<&str> = queues.iter().map(QueueName::as_str).collect();
        let rows = connection.query(&QUEUE_LAGS, &[&names]).await?;
        let lag = |row: &Row| {
            let queue = QueueName::new(row.get::<_, String>("queue"))?;
            Ok(QueueLag { queue, lag: row.get("waiting"), leases: row.get("leases") })
        };
        rows.iter().map(lag).collect()
    }

    /// Where groups stand, partition by partition: where the oldest waiting message has waited at
    /// least `behind`, or everywhere with zero. At most `limit` entries, and never more than
    /// 10,000.
    pub async fn group_partitions(
        &self,
        queue: Option<&QueueName>,
        group: Option<&GroupName>,
        behind: Duration,
        limit: u32,
    ) -> Result<Vec<PartitionLag>, MessagesError> {
        let connection = self.parts.context.database.administer().await?;
        let (queue, group) = (queue.map(QueueName::as_str), group.map(GroupName::as_str));
        let limit = i64::from(limit).min(LISTED_MAX);
        let rows = connection.query(&GROUP_PARTITIONS, &[&group, &queue, &behind.as_secs_f64(), &limit]).await?;
        rows.iter().map(PartitionLag::read).collect()
    }

    /// How many messages wait for a group. For a group that never popped, that is everything that
    /// is kept. A queue that does not exist has none.
    pub async fn available(&self, queue: &QueueName, group: &GroupName) -> Result<Available, MessagesError> {
        let connection = self.parts.context.database.administer().await?;
        let row = connection.query_opt(&COUNT_WAITING, &[&queue.as_str(), &group.as_str()]).await?;
        Ok(row.map_or_else(Available::default, |row| Available {
            waiting: row.get("waiting"),
            leased: row.get("leased"),
        }))
    }

    /// Delete a group from one queue, or from all. Its leases are lost. Its dead letters stay.
    pub async fn delete_group(
        &self,
        queue: Option<&QueueName>,
        group: &GroupName,
        subscriptions: Subscriptions,
    ) -> Result<DeletedGroup, MessagesError> {
        let entries = self.groups_named(queue, group).await?;
        let mut deleted = DeletedGroup { queues: entries.len() as u64, partitions: 0 };
        for entry in entries {
            deleted.partitions += match subscriptions {
                // Its cursors stay, so that its partitions can be marked ready: the group goes back
                // to where it began.
                Subscriptions::Keep => self.move_group(&entry, None, Target::SUBSCRIPTION).await?.partitions,
                Subscriptions::Forget => self.forget_group(&entry).await?,
            };
        }
        Ok(deleted)
    }

    /// Change where a group began, in every queue that knows it, to this time. It begins there when
    /// it is deleted and its subscription is kept. Returns the number of queues.
    pub async fn change_subscription(&self, group: &GroupName, from: SystemTime) -> Result<u64, MessagesError> {
        let connection = self.parts.context.database.administer().await?;
        Ok(connection.execute(&SUBSCRIBE, &[&group.as_str(), &moment(from)]).await?)
    }

    /// Deletes the group's row first: from then on no cursors are created for it.
    async fn forget_group(&self, group: &GroupEntry) -> Result<u64, MessagesError> {
        let context = &self.parts.context;
        let connection = context.database.administer().await?;
        connection.execute(&FORGET_GROUP, &[&group.id.0]).await?;
        let (mut after, mut deleted) = (0, 0_i64);
        while let Some(row) =
            connection.query_opt(&DELETE_CURSORS, &[&group.id.0, &group.queue.0, &after, &DELETED_AT_ONCE]).await?
        {
            after = row.get("last");
            deleted += row.get::<_, i64>("deleted");
        }
        tracing::info!(queue = group.queue_name.as_str(), partitions = deleted, "deleted a consumer group");
        context.notifier.queue_changed(group.queue);
        Ok(deleted.unsigned_abs())
    }
}

impl GroupDescription {
    fn read(row: &Row) -> Result<Self, MessagesError> {
        let (lag, leases): (i64, i64) = (row.get("waiting"), row.get("leases"));
        let began = match (row.get::<_, &str>("mode"), row.get::<_, Option<SystemTime>>("from_at")) {
            ("from", Some(from)) => Began::From(from),
            ("new", _) => Began::New,
            _ => Began::All,
        };
        let state = match (lag, leases) {
            (0, _) => GroupState::Idle,
            (_, 0) => GroupState::Waiting,
            _ => GroupState::Working,
        };
        Ok(Self {
            queue: QueueName::new(row.get::<_, String>("queue_name"))?,
            name: GroupName::new(row.get::<_, String>("name"))?,
            began,
            created_at: row.get("created_at"),
            partitions: row.get("partitions"),
            partitions_behind: row.get("partitions_behind"),
            lag,
            lag_time: duration(row.get("lag_s")).unwrap_or_default(),
            leases,
            state,
        })
    }
}

impl PartitionLag {
    fn read(row: &Row) -> Result<Self, MessagesError> {
        let leased: bool = row.get("leased");
        Ok(Self {
            queue: QueueName::new(row.get::<_, String>("queue_name"))?,
            group: GroupName::new(row.get::<_, String>("consumer"))?,
            partition: PartitionName::new(row.get::<_, String>("name"))?,
            partition_uid: PartitionUid(row.get("uid")),
            settled: row.get("committed"),
            newest: row.get("newest"),
            lag: row.get("waiting"),
            lag_time: duration(row.get("lag_s")).unwrap_or_default(),
            lease: duration(row.get("lease_s")).filter(|_| leased),
            failures: row.get("failures"),
            deliveries: row.get("deliveries"),
        })
    }
}

fn duration(seconds: Option<f64>) -> Option<Duration> {
    seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
}
