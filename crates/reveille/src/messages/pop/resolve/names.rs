//! Finds out which waited names mean something else now: a queue or partition was created, or the
//! queues of a namespace or task changed.
//!
//! One statement for all names of a round, `sql/messages/pop/names.sql`; none if no demand waits
//! for a name.
//!
//! Next: [`super::super::round`], which ends the claims that wait for such a name.

use std::collections::HashSet;

use tokio_postgres::Row;

use crate::database::{Connection, DatabaseError, Param};
use crate::messages::ids::QueueId;
use crate::messages::key::Key;
use crate::messages::statements::NAMES;

/// Names that changed.
#[derive(Debug, Default)]
pub(in crate::messages::pop) struct Changed {
    /// These keys mean something else now.
    pub(in crate::messages::pop) keys: HashSet<Key>,
    /// Names of queues that do not exist, though the outbox has messages for them.
    pub(in crate::messages::pop) outboxes: Vec<String>,
}

/// Reads, in one statement, what became of those keys that are names.
pub(in crate::messages::pop) async fn changed<'k>(
    connection: &Connection,
    keys: impl Iterator<Item = &'k Key>,
) -> Result<Changed, DatabaseError> {
    let waited = WaitedNames::of(keys);
    let mut changed = Changed::default();
    if waited.is_empty() {
        return Ok(changed);
    }
    let params: [Param<'_>; 5] =
        [&waited.queue_names, &waited.partition_queues, &waited.partition_names, &waited.namespaces, &waited.tasks];
    for row in connection.query(&NAMES, &params).await? {
        match row.get::<_, Option<String>>("outbox_queue") {
            Some(queue) => changed.outboxes.push(queue),
            None => changed.keys.extend(waited.changed_by(&row).cloned()),
        }
    }
    Ok(changed)
}

/// The keys that are names, kind by kind, and beside them the parameters of the statement.
#[derive(Default)]
struct WaitedNames<'k> {
    queues: Vec<&'k Key>,
    queue_names: Vec<&'k str>,
    partitions: Vec<&'k Key>,
    partition_queues: Vec<i32>,
    partition_names: Vec<&'k str>,
    spaces: Vec<&'k Key>,
    namespaces: Vec<Option<&'k str>>,
    tasks: Vec<Option<&'k str>>,
}

impl<'k> WaitedNames<'k> {
    fn of(keys: impl Iterator<Item = &'k Key>) -> Self {
        let mut waited = Self::default();
        for key in keys {
            match key {
                Key::Queue(name) => {
                    waited.queues.push(key);
                    waited.queue_names.push(name.as_str());
                }
                Key::Partition(queue, name) => {
                    waited.partitions.push(key);
                    waited.partition_queues.push(queue.0);
                    waited.partition_names.push(name.as_str());
                }
                Key::Space(space) => {
                    waited.spaces.push(key);
                    waited.namespaces.push(space.namespace.as_deref());
                    waited.tasks.push(space.task.as_deref());
                }
                Key::Claim { .. } => {}
            }
        }
        waited
    }

    fn is_empty(&self) -> bool {
        self.queues.is_empty() && self.partitions.is_empty() && self.spaces.is_empty()
    }

    /// The key that a row is about, if it means something else now.
    fn changed_by(&self, row: &Row) -> Option<&'k Key> {
        let number = usize::try_from(row.get::<_, i32>("position") - 1).ok()?;
        match row.get::<_, &str>("kind") {
            "queue" => self.queues.get(number).copied(),
            "partition" => self.partitions.get(number).copied(),
            _ => self.spaces.get(number).copied().filter(|key| !has_queues(key, row)),
        }
    }
}

/// Whether a namespace or task still has the queues that its key was made with.
fn has_queues(key: &Key, row: &Row) -> bool {
    let queues: Vec<QueueId> = row.get::<_, Vec<i32>>("queues").into_iter().map(QueueId).collect();
    matches!(key, Key::Space(space) if space.seen_queues == queues)
}
