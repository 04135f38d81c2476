//! Names and their rows: looked up once, then known.
//!
//! Owns what this process remembers of queues and partitions, within a bound. Ids are never used twice, so what is
//! remembered of a partition is true until its queue is deleted; a statement that finds a row gone says so with
//! [`Catalog::forget_queue`]. What can be configured is asked for again after a second.
//!
//! Next: [`super::push`], which makes what is not there.

mod known;
mod queue_entry;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_postgres::Row;

pub(super) use queue_entry::QueueEntry;

use super::error::MessagesError;
use super::ids::{PartitionId, PartitionUid, QueueId};
use super::name::{PartitionName, QueueName};
use super::statements::{ENSURE, FIND_QUEUES, PARTITION_BY_NAME, PARTITION_BY_UID, PARTITIONS, SPACES};
use crate::database::{Connection, Database, DatabaseError};
use known::Known;

/// Queues of one namespace or task that one pop looks at.
const SPACE_MAX: i64 = 1000;

/// What this process knows.
#[derive(Debug, Default)]
pub(super) struct Catalog {
    known: Mutex<Known>,
}

/// A partition, as its row says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PartitionEntry {
    pub(super) id: PartitionId,
    pub(super) queue: QueueId,
    pub(super) queue_name: QueueName,
    pub(super) name: PartitionName,
    pub(super) uid: PartitionUid,
}

impl Catalog {
    /// A partition, if it is known.
    pub(super) fn recall(&self, queue: &QueueName, partition: &PartitionName) -> Option<Arc<PartitionEntry>> {
        self.known().partition(queue, partition).cloned()
    }

    /// Make what is not there, whatever is remembered.
    pub(super) async fn ensure(
        &self,
        connection: &Connection,
        queue: &QueueName,
        partitions: &[PartitionName],
    ) -> Result<Vec<Arc<PartitionEntry>>, DatabaseError> {
        let names: Vec<&str> = partitions.iter().map(PartitionName::as_str).collect();
        let rows = connection.query(&ENSURE, &[&queue.as_str(), &names]).await?;
        let mut made = HashMap::with_capacity(rows.len());
        let mut known = self.known();
        for row in &rows {
            let Ok(name) = PartitionName::new(row.get::<_, String>("name")) else { continue };
            let entry = Arc::new(PartitionEntry {
                id: PartitionId(row.get("partition")),
                queue: QueueId(row.get("queue")),
                queue_name: queue.clone(),
                name: name.clone(),
                uid: PartitionUid(row.get("uid")),
            });
            known.learn(Arc::clone(&entry));
            made.insert(name, entry);
        }
        Ok(partitions.iter().filter_map(|name| made.get(name).cloned()).collect())
    }

    /// A queue, if it is there; what it is like is at most a second old.
    pub(super) async fn queue(
        &self,
        database: &Database,
        name: &QueueName,
    ) -> Result<Option<Arc<QueueEntry>>, MessagesError> {
        if let Some(entry) = self.known().queue(name) {
            return Ok(Some(entry));
        }
        Ok(self.queue_now(&*database.acquire().await?, name).await?)
    }

    /// The same on a connection of the caller's.
    pub(super) async fn queue_on(
        &self,
        connection: &Connection,
        name: &QueueName,
    ) -> Result<Option<Arc<QueueEntry>>, DatabaseError> {
        if let Some(entry) = self.known().queue(name) {
            return Ok(Some(entry));
        }
        self.queue_now(connection, name).await
    }

    /// As its row is now.
    pub(super) async fn queue_now(
        &self,
        connection: &Connection,
        name: &QueueName,
    ) -> Result<Option<Arc<QueueEntry>>, DatabaseError> {
        let row = connection.query_opt(&FIND_QUEUES, &[&[name.as_str()].as_slice()]).await?;
        let mut known = self.known();
        let Some(entry) = row.as_ref().and_then(QueueEntry::read) else {
            // Deleted by somebody, and perhaps made anew under another id.
            if let Some(stale) = known.queue_id(name) {
                known.forget_queue(stale);
            }
            return Ok(None);
        };
        Ok(Some(known.learn_queue(entry)))
    }

    /// The queues of a namespace, of a task, or of both, the first to be served first.
    pub(super) async fn spaces(
        &self,
        database: &Database,
        namespace: Option<&str>,
        task: Option<&str>,
    ) -> Result<Vec<Arc<QueueEntry>>, MessagesError> {
        let rows = database.acquire().await?.query(&SPACES, &[&namespace, &task, &SPACE_MAX]).await?;
        let mut known = self.known();
        Ok(rows.iter().filter_map(QueueEntry::read).map(|entry| known.learn_queue(entry)).collect())
    }

    /// What partitions are called; those whose queue is deleted are left out.
    pub(super) async fn describe(
        &self,
        database: &Database,
        partitions: &[PartitionId],
    ) -> Result<HashMap<PartitionId, Arc<PartitionEntry>>, MessagesError> {
        let (mut found, unknown) = self.known().described(partitions);
        if !unknown.is_empty() {
            let ids: Vec<i32> = unknown.iter().map(|id| id.0).collect();
            let rows = database.acquire().await?.query(&PARTITIONS, &[&ids]).await?;
            found.extend(self.learn(&rows).into_iter().map(|entry| (entry.id, entry)));
        }
        Ok(found)
    }

    /// The partition that the outside world knows under this id.
    pub(super) async fn by_uid(
        &self,
        database: &Database,
        uid: PartitionUid,
    ) -> Result<Option<Arc<PartitionEntry>>, MessagesError> {
        if let Some(entry) = self.known().by_uid(uid) {
            return Ok(Some(entry));
        }
        let row = database.acquire().await?.query_opt(&PARTITION_BY_UID, &[&uid.0]).await?;
        Ok(self.learn(row.as_slice()).pop())
    }

    /// A partition that is there; nothing is made.
    async fn find_partition(
        &self,
        database: &Database,
        queue: &QueueName,
        partition: &PartitionName,
    ) -> Result<Option<Arc<PartitionEntry>>, MessagesError> {
        if let Some(entry) = self.known().partition(queue, partition).cloned() {
            return Ok(Some(entry));
        }
        let params: [crate::database::Param<'_>; 2] = [&queue.as_str(), &partition.as_str()];
        let row = database.acquire().await?.query_opt(&PARTITION_BY_NAME, &params).await?;
        Ok(self.learn(row.as_slice()).pop())
    }

    /// The same in a queue that is known by its row: what is remembered may be of one that had the name before.
    pub(super) async fn find_partition_of(
        &self,
        database: &Database,
        (queue, name): (QueueId, &QueueName),
        partition: &PartitionName,
    ) -> Result<Option<Arc<PartitionEntry>>, MessagesError> {
        let found = self.find_partition(database, name, partition).await?;
        let Some(stale) = found.as_ref().filter(|entry| entry.queue != queue) else { return Ok(found) };
        self.forget_queue(stale.queue);
        let found = self.find_partition(database, name, partition).await?;
        Ok(found.filter(|entry| entry.queue == queue))
    }

    /// What is remembered of a queue is not true any more.
    pub(super) fn forget_queue(&self, queue: QueueId) {
        self.known().forget_queue(queue);
    }

    /// A queue was configured: ask for it again.
    pub(super) fn refresh_queue(&self, name: &QueueName) {
        self.known().refresh_queue(name);
    }

    fn learn(&self, rows: &[Row]) -> Vec<Arc<PartitionEntry>> {
        let entries: Vec<_> = rows.iter().filter_map(PartitionEntry::read).map(Arc::new).collect();
        let mut known = self.known();
        for entry in &entries {
            known.learn(Arc::clone(entry));
        }
        entries
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PartitionEntry {
    fn read(row: &Row) -> Option<Self> {
        Some(Self {
            id: PartitionId(row.get("id")),
            queue: QueueId(row.get("queue")),
            queue_name: QueueName::new(row.get::<_, String>("queue_name")).ok()?,
            name: PartitionName::new(row.get::<_, String>("name")).ok()?,
            uid: PartitionUid(row.get("uid")),
        })
    }
}
