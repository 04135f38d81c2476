//! Queues as a whole: configured, listed, purged, deleted.
//!
//! Owns the administration of queues. Promises that a change wakes all consumers it may concern, on
//! all nodes; that a deleted queue is gone at once, and its rows a few at a time afterwards; and
//! that a push to a queue that is being deleted either is deleted with it or re-creates it.
//!
//! Next: `options`, for what can be configured; `describe`, for what is shown.

mod describe;
mod options;

use std::str::FromStr;

pub use describe::{QueueDescription, QueueList, Space};
pub use options::QueueOptions;

use super::Messages;
use super::error::MessagesError;
use super::ids::{PartitionUid, QueueId};
use super::name::{PartitionName, QueueName};
use super::statements::{
    CONFIGURE, DELETE_QUEUE, DESCRIBE_QUEUE, HASTEN, LIST_QUEUES, NAMESPACES, PURGE, REMOVE_LEFTOVERS, SWITCHES, TASKS,
    TURN_SWITCH,
};

/// How many rows of a table one statement removes.
const REMOVED_MAX: i32 = 5000;
/// How many such statements a deletion runs; upkeep removes the rows that are left.
const REMOVALS_MAX: usize = 200;
/// How many namespaces, tasks or queues one list has at most.
const LISTED_MAX: i64 = 1000;

/// A switch for all queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    /// Pushes are stored durably in the outbox, and answered as buffered; they reach their
    /// partitions when the switch is off again.
    PushPaused,
    /// Pops return nothing.
    PopPaused,
}

impl Switch {
    fn name(self) -> &'static str {
        match self {
            Self::PushPaused => "push_paused",
            Self::PopPaused => "pop_paused",
        }
    }
}

impl FromStr for Switch {
    type Err = MessagesError;

    fn from_str(name: &str) -> Result<Self, MessagesError> {
        let known = [Self::PushPaused, Self::PopPaused].into_iter().find(|switch| switch.name() == name);
        let wrong = || MessagesError::OutOfRange {
            what: "the switch",
            allowed: "push_paused or pop_paused",
            given: name.to_owned(),
        };
        known.ok_or_else(wrong)
    }
}

impl Messages {
    /// Create a queue, or change it: only the options that are given. Returns the queue as it is
    /// then.
    pub async fn configure(&self, name: &QueueName, options: &QueueOptions) -> Result<QueueDescription, MessagesError> {
        options.check()?;
        let context = &self.parts.context;
        let connection = context.database.administer().await?;
        let params = options.params(name);
        let row = connection.query_opt(&CONFIGURE, &params.each_ref().map(|param| &**param as _)).await?;
        let queue = row.as_ref().and_then(QueueDescription::read).ok_or(MessagesError::Closed)?;
        if options.may_hasten() {
            connection.execute(&HASTEN, &[&queue.id.0]).await?;
        }
        drop(connection);
        context.catalog.refresh_queue(name);
        context.notifier.queue_changed(queue.id);
        Ok(queue)
    }

    /// Stop pops from the queue until [`resume`](Self::resume). Existing leases stay valid.
    pub async fn pause(&self, name: &QueueName) -> Result<QueueDescription, MessagesError> {
        self.configure_known(name, &QueueOptions::default().paused(true)).await
    }

    /// Allow pops from the queue again.
    pub async fn resume(&self, name: &QueueName) -> Result<QueueDescription, MessagesError> {
        self.configure_known(name, &QueueOptions::default().paused(false)).await
    }

    async fn configure_known(
        &self,
        name: &QueueName,
        options: &QueueOptions,
    ) -> Result<QueueDescription, MessagesError> {
        self.queue(name).await?.ok_or_else(|| MessagesError::NoQueue { queue: name.to_string() })?;
        self.configure(name, options).await
    }

    /// Delete a queue with everything in it: messages, groups, dead letters. Returns whether it
    /// existed. The queue is gone at once; its rows are then removed a few at a time, and if there
    /// are too many, upkeep removes the others.
    pub async fn delete_queue(&self, name: &QueueName) -> Result<bool, MessagesError> {
        let context = &self.parts.context;
        let connection = context.database.administer().await?;
        let Some(row) = connection.query_opt(&DELETE_QUEUE, &[&name.as_str()]).await? else { return Ok(false) };
        let queue = QueueId(row.get(0));
        context.catalog.forget_queue(queue);
        context.notifier.queue_changed(queue);
        for _ in 0..REMOVALS_MAX {
            let removed = connection.query_opt(&REMOVE_LEFTOVERS, &[&queue.0, &REMOVED_MAX]).await?;
            if removed.is_none_or(|row| row.get::<_, i64>(0) == 0) {
                break;
            }
        }
        Ok(true)
    }

    /// Delete every message of a queue; its partitions and groups stay. Returns the number of
    /// messages.
    pub async fn purge(&self, name: &QueueName) -> Result<i64, MessagesError> {
        let context = &self.parts.context;
        let connection = context.database.administer().await?;
        let row = connection.query_opt(&PURGE, &[&name.as_str()]).await?;
        let purged = row.map_or(0, |row| row.get(0));
        drop(connection);
        match self.queue(name).await? {
            Some(queue) => context.notifier.queue_changed(queue.id),
            None if purged == 0 => return Err(MessagesError::NoQueue { queue: name.to_string() }),
            None => {}
        }
        Ok(purged)
    }

    /// The names of a partition, by its public id: the name of its queue, and its own.
    pub async fn partition_names(
        &self,
        partition: PartitionUid,
    ) -> Result<Option<(QueueName, PartitionName)>, MessagesError> {
        let context = &self.parts.context;
        let entry = context.catalog.by_uid(&context.database, partition).await?;
        Ok(entry.map(|entry| (entry.queue_name.clone(), entry.name.clone())))
    }

    /// A queue, if it exists.
    pub async fn queue(&self, name: &QueueName) -> Result<Option<QueueDescription>, MessagesError> {
        let connection = self.database().administer().await?;
        let row = connection.query_opt(&DESCRIBE_QUEUE, &[&name.as_str()]).await?;
        Ok(row.as_ref().and_then(QueueDescription::read))
    }

    /// Queues by name, a page at a time.
    pub async fn queues(&self, list: &QueueList) -> Result<Vec<QueueDescription>, MessagesError> {
        let connection = self.database().administer().await?;
        let limit = list.limit.clamp(1, LISTED_MAX);
        let after = list.after.as_ref().map_or("", QueueName::as_str);
        let rows = connection.query(&LIST_QUEUES, &[&after, &list.namespace, &list.task, &list.text, &limit]).await?;
        Ok(rows.iter().filter_map(QueueDescription::read).collect())
    }

    /// The namespaces of all queues, the first thousand by name.
    pub async fn namespaces(&self) -> Result<Vec<Space>, MessagesError> {
        let rows = self.database().administer().await?.query(&NAMESPACES, &[&LISTED_MAX]).await?;
        Ok(rows.iter().map(Space::read).collect())
    }

    /// The tasks of all queues, the first thousand by name.
    pub async fn tasks(&self) -> Result<Vec<Space>, MessagesError> {
        let rows = self.database().administer().await?.query(&TASKS, &[&LISTED_MAX]).await?;
        Ok(rows.iter().map(Space::read).collect())
    }

    /// Turn a switch on or off, for all nodes.
    pub async fn turn(&self, switch: Switch, on: bool) -> Result<(), MessagesError> {
        self.database().administer().await?.execute(&TURN_SWITCH, &[&switch.name(), &on]).await?;
        if !on {
            self.parts.context.notifier.everything();
        }
        Ok(())
    }

    /// Whether a switch is on.
    pub async fn is_on(&self, switch: Switch) -> Result<bool, MessagesError> {
        let rows = self.database().administer().await?.query(&SWITCHES, &[]).await?;
        Ok(rows.iter().any(|row| row.get::<_, &str>(0) == switch.name() && row.get(1)))
    }
}
