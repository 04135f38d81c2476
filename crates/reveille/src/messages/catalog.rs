//! Names and their rows: looked up once, then known.
//!
//! Owns what this process remembers of queues and partitions, within a bound. Ids are never used
//! twice, so what is remembered of a partition is true until its queue is deleted; a statement that
//! finds a row gone says so with [`Catalog::forget_queue`]. What can be configured is asked for
//! again after a second.
//!
//! Next: [`super::push`], which makes what is not there.

mod known;
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
use known::Known;

/// Queues of one namespace or task that one pop looks at.
const SPACE_MAX: i64 = 1000;
/// Names that one statement makes or looks up.
const NAMED_MAX: usize = 1000;

/// A queue by its row and its name: a queue that was made anew has another row under the same name.
#[derive(Debug, Clone, Copy)]
pub(super) struct NamedQueue<'n> {
    pub(super) id: QueueId,
    pub(super) name: &'n QueueName,
}

/// What this process knows.
#[derive(Debug, Default)]
pub(super) struct Catalog {
    known: Mutex<Known>,
}

/// A partition by its names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct PartitionPath {
    pub(super) queue: QueueName,
    pub(super) partition: PartitionName,
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
        self.known().partition(queue, partition)
    }

    /// Make what is not there, whatever is remembered, and answer in the order of the question:
    /// nothing for a partition whose queue was deleted in this moment. What is made may be more
    /// than is remembered, so that it must be taken from here.
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
            let mut known = self.known();
            for entry in rows.iter().filter_map(PartitionEntry::read).map(Arc::new) {
                known.learn(Arc::clone(&entry));
                made.insert(PartitionPath { queue: entry.queue_name.clone(), partition: entry.name.clone() }, entry);
            }
        }
        Ok(wanted.iter().map(|path| made.get(path).cloned()).collect())
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

    /// Many queues, those that are there.
    pub(super) async fn queues_on<'n>(
        &self,
        connection: &Connection,
        names: impl Iterator<Item = &'n QueueName>,
    ) -> Result<Vec<Arc<QueueEntry>>, DatabaseError> {
        let (mut found, mut unknown) = (Vec::new(), Vec::new());
        {
            let mut known = self.known();
            for name in names {
                match known.queue(name) {
                    Some(entry) => found.push(entry),
                    None => unknown.push(name.as_str()),
                }
            }
        }
        for some in unknown.chunks(NAMED_MAX) {
            let rows = connection.query(&FIND_QUEUES, &[&some]).await?;
            let mut known = self.known();
            found.extend(rows.iter().filter_map(QueueEntry::read).map(|entry| known.learn_queue(entry)));
        }
        Ok(found)
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
        Ok(self.by_uids(database, [uid].into()).await?.remove(&uid))
    }

    /// The same for many; those that are not there are left out.
    pub(super) async fn by_uids(
        &self,
        database: &Database,
        uids: HashSet<PartitionUid>,
    ) -> Result<HashMap<PartitionUid, Arc<PartitionEntry>>, MessagesError> {
        let (mut found, mut unknown) = (HashMap::with_capacity(uids.len()), Vec::new());
        {
            let mut known = self.known();
            for uid in uids {
                match known.by_uid(uid) {
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

    /// A partition that is there; nothing is made.
    async fn find_partition(
        &self,
        database: &Database,
        queue: &QueueName,
        partition: &PartitionName,
    ) -> Result<Option<Arc<PartitionEntry>>, MessagesError> {
        if let Some(entry) = self.known().partition(queue, partition) {
            return Ok(Some(entry));
        }
        let params: [crate::database::Param<'_>; 2] = [&queue.as_str(), &partition.as_str()];
        let row = database.acquire().await?.query_opt(&PARTITION_BY_NAME, &params).await?;
        Ok(self.learn(row.as_slice()).pop())
    }

    /// The same in a queue that is known by its row: what is remembered may be of one that had the
    /// name before.
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
