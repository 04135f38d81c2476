//! Resolves the names of queues and partitions to their rows.
//!
//! Owns what this process remembers of queues and partitions, within a bound. Ids are never used
//! twice, so what is remembered of a partition is true until its queue is deleted. A caller whose
//! statement finds a row gone calls [`Catalog::forget_queue`]. Options of a queue are read again
//! after a second.
//!
//! Next: `cache`, which remembers; [`super::push`], which creates what does not exist.

mod cache;
mod queue_entry;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_postgres::Row;

pub(super) use queue_entry::QueueEntry;

use super::error::MessagesError;
use super::ids::{PartitionId, PartitionUid, QueueId};
use super::name::{PartitionName, QueueName};
use super::statements::{ENSURE, FIND_QUEUES, PARTITION_BY_NAME, PARTITIONS, PARTITIONS_BY_UID, SPACES};
use crate::database::{Connection, Database, DatabaseError};
use cache::Cache;

/// How many queues of a namespace or task are read.
const SPACE_MAX: i64 = 1000;
/// How many names one statement creates or looks up.
const NAMED_MAX: usize = 1000;

/// A queue by its row and its name: a re-created queue has another row under the same name.
#[derive(Debug, Clone, Copy)]
pub(super) struct NamedQueue<'n> {
    pub(super) id: QueueId,
    pub(super) name: &'n QueueName,
}

/// The queues and partitions that this process knows.
#[derive(Debug, Default)]
pub(super) struct Catalog {
    cache: Mutex<Cache>,
}

/// A partition by its names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct PartitionPath {
    pub(super) queue: QueueName,
    pub(super) partition: PartitionName,
}

/// A partition, as read from its row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PartitionEntry {
    pub(super) id: PartitionId,
    pub(super) queue: QueueId,
    pub(super) queue_name: QueueName,
    pub(super) name: PartitionName,
    pub(super) uid: PartitionUid,
}

impl Catalog {
    /// A partition, if this process remembers it.
    pub(super) fn recall(&self, queue: &QueueName, partition: &PartitionName) -> Option<Arc<PartitionEntry>> {
        self.cache().partition(queue, partition)
    }

    /// Creates the partitions that do not exist, and returns all in the order given: `None` for a
    /// partition whose queue was deleted meanwhile. There may be more than can be remembered, so
    /// the caller must use the returned entries.
    pub(super) async fn make(
        &self,
        connection: &Connection,
        wanted: &[PartitionPath],
    ) -> Result<Vec<Option<Arc<PartitionEntry>>>, DatabaseError> {
        let distinct: Vec<&PartitionPath> = wanted.iter().collect::<BTreeSet<_>>().into_iter().collect();
        let mut made = HashMap::with_capacity(distinct.len());
        for some in distinct.chunks(NAMED_MAX) {
            let queues: Vec<&str> = some.iter().map(|path| path.queue.as_str()).collect();
            let names: Vec<&str> = some.iter().map(|path| path.partition.as_str()).collect();
            let rows = connection.query(&ENSURE, &[&queues, &names]).await?;
            let mut cache = self.cache();
            for entry in rows.iter().filter_map(PartitionEntry::read).map(Arc::new) {
                cache.learn(Arc::clone(&entry));
                made.insert(PartitionPath { queue: entry.queue_name.clone(), partition: entry.name.clone() }, entry);
            }
        }
        Ok(wanted.iter().map(|path| made.get(path).cloned()).collect())
    }

    /// A queue, if it exists; its options are at most a second old.
    pub(super) async fn queue(
        &self,
        database: &Database,
        name: &QueueName,
    ) -> Result<Option<Arc<QueueEntry>>, MessagesError> {
        if let Some(entry) = self.cache().queue(name) {
            return Ok(Some(entry));
        }
        Ok(self.queue_now(&*database.acquire().await?, name).await?)
    }

    /// Those of the queues that exist.
    pub(super) async fn queues_on<'n>(
        &self,
        connection: &Connection,
        names: impl Iterator<Item = &'n QueueName>,
    ) -> Result<Vec<Arc<QueueEntry>>, DatabaseError> {
        let (mut found, mut unknown) = (Vec::new(), Vec::new());
        {
            let mut cache = self.cache();
            for name in names {
                match cache.queue(name) {
                    Some(entry) => found.push(entry),
                    None => unknown.push(name.as_str()),
                }
            }
        }
        for some in unknown.chunks(NAMED_MAX) {
            let rows = connection.query(&FIND_QUEUES, &[&some]).await?;
            let mut cache = self.cache();
            found.extend(rows.iter().filter_map(QueueEntry::read).map(|entry| cache.learn_queue(entry)));
        }
        Ok(found)
    }

    /// A queue as its row is now.
    pub(super) async fn queue_now(
        &self,
        connection: &Connection,
        name: &QueueName,
    ) -> Result<Option<Arc<QueueEntry>>, DatabaseError> {
        let row = connection.query_opt(&FIND_QUEUES, &[&[name.as_str()].as_slice()]).await?;
        let mut cache = self.cache();
        let Some(entry) = row.as_ref().and_then(QueueEntry::read) else {
            // It was deleted, and perhaps re-created under another id.
            if let Some(stale) = cache.queue_id(name) {
                cache.forget_queue(stale);
            }
            return Ok(None);
        };
        Ok(Some(cache.learn_queue(entry)))
    }

    /// The queues of a namespace, of a task, or of both, the first to be served first.
    pub(super) async fn spaces(
        &self,
        database: &Database,
        namespace: Option<&str>,
        task: Option<&str>,
    ) -> Result<Vec<Arc<QueueEntry>>, MessagesError> {
        let rows = database.acquire().await?.query(&SPACES, &[&namespace, &task, &SPACE_MAX]).await?;
        let mut cache = self.cache();
        Ok(rows.iter().filter_map(QueueEntry::read).map(|entry| cache.learn_queue(entry)).collect())
    }

    /// Partitions by their ids; those whose queue is deleted are left out.
    pub(super) async fn describe(
        &self,
        database: &Database,
        partitions: &[PartitionId],
    ) -> Result<HashMap<PartitionId, Arc<PartitionEntry>>, MessagesError> {
        let (mut found, unknown) = self.cache().described(partitions);
        if !unknown.is_empty() {
            let ids: Vec<i32> = unknown.iter().map(|id| id.0).collect();
            let rows = database.acquire().await?.query(&PARTITIONS, &[&ids]).await?;
            found.extend(self.learn(&rows).into_iter().map(|entry| (entry.id, entry)));
        }
        Ok(found)
    }

    /// The partition with this public id.
    pub(super) async fn by_uid(
        &self,
        database: &Database,
        uid: PartitionUid,
    ) -> Result<Option<Arc<PartitionEntry>>, MessagesError> {
        Ok(self.by_uids(database, [uid].into()).await?.remove(&uid))
    }

    /// The same for many; those that do not exist are left out.
    pub(super) async fn by_uids(
        &self,
        database: &Database,
        uids: HashSet<PartitionUid>,
    ) -> Result<HashMap<PartitionUid, Arc<PartitionEntry>>, MessagesError> {
        let (mut found, mut unknown) = (HashMap::with_capacity(uids.len()), Vec::new());
        {
            let mut cache = self.cache();
            for uid in uids {
                match cache.by_uid(uid) {
                    Some(entry) => _ = found.insert(uid, entry),
                    None => unknown.push(uid.0),
                }
            }
        }
        for some in unknown.chunks(NAMED_MAX) {
            let rows = database.acquire().await?.query(&PARTITIONS_BY_UID, &[&some]).await?;
            found.extend(self.learn(&rows).into_iter().map(|entry| (entry.uid, entry)));
        }
        Ok(found)
    }

    /// A partition, if it exists; nothing is created.
    async fn find_partition(
        &self,
        database: &Database,
        queue: &QueueName,
        partition: &PartitionName,
    ) -> Result<Option<Arc<PartitionEntry>>, MessagesError> {
        if let Some(entry) = self.cache().partition(queue, partition) {
            return Ok(Some(entry));
        }
        let params: [crate::database::Param<'_>; 2] = [&queue.as_str(), &partition.as_str()];
        let row = database.acquire().await?.query_opt(&PARTITION_BY_NAME, &params).await?;
        Ok(self.learn(row.as_slice()).pop())
    }

    /// The same in a queue that is known by its row: this process may remember the partition of an
    /// earlier queue with the same name.
    pub(super) async fn find_partition_of(
        &self,
        database: &Database,
        queue: NamedQueue<'_>,
        partition: &PartitionName,
    ) -> Result<Option<Arc<PartitionEntry>>, MessagesError> {
        let found = self.find_partition(database, queue.name, partition).await?;
        let Some(stale) = found.as_ref().filter(|entry| entry.queue != queue.id) else { return Ok(found) };
        self.forget_queue(stale.queue);
        let found = self.find_partition(database, queue.name, partition).await?;
        Ok(found.filter(|entry| entry.queue == queue.id))
    }

    /// What this process remembers of the queue is outdated.
    pub(super) fn forget_queue(&self, queue: QueueId) {
        self.cache().forget_queue(queue);
    }

    /// The queue was configured: its options are read again.
    pub(super) fn refresh_queue(&self, name: &QueueName) {
        self.cache().refresh_queue(name);
    }

    fn learn(&self, rows: &[Row]) -> Vec<Arc<PartitionEntry>> {
        let entries: Vec<_> = rows.iter().filter_map(PartitionEntry::read).map(Arc::new).collect();
        let mut cache = self.cache();
        for entry in &entries {
            cache.learn(Arc::clone(entry));
        }
        entries
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
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
