//! Whether what was not there has come.

use std::collections::HashSet;

use crate::database::{Connection, DatabaseError, Param};
use crate::messages::ids::QueueId;
use crate::messages::key::Key;
use crate::messages::statements::NAMES;

/// What became of names.
#[derive(Debug, Default)]
pub(in crate::messages::pop) struct Changed {
    /// These keys mean something else now.
    pub(in crate::messages::pop) keys: HashSet<Key>,
    /// Queues that are not there, though somebody's transaction has sent them something.
    pub(in crate::messages::pop) sent: Vec<String>,
}

/// Asks about those of the keys that are names, in one statement.
pub(in crate::messages::pop) async fn changed<'k>(
    connection: &Connection,
    keys: impl Iterator<Item = &'k Key>,
) -> Result<Changed, DatabaseError> {
    let (mut queues, mut partitions, mut spaces) = (Vec::new(), Vec::new(), Vec::new());
    for key in keys {
        match key {
            Key::Queue(name) => queues.push((key, name)),
            Key::Partition(queue, name) => partitions.push((key, queue.0, name.as_str())),
            Key::Space(space) => spaces.push((key, space)),
            Key::Claim { .. } => {}
        }
    }
    let mut changed = Changed::default();
    if queues.is_empty() && partitions.is_empty() && spaces.is_empty() {
        return Ok(changed);
    }
    let names: Vec<&str> = queues.iter().map(|(_, name)| name.as_str()).collect();
    let owners: Vec<i32> = partitions.iter().map(|(_, queue, _)| *queue).collect();
    let parts: Vec<&str> = partitions.iter().map(|(_, _, name)| *name).collect();
    let namespaces: Vec<Option<&str>> = spaces.iter().map(|(_, space)| space.namespace.as_deref()).collect();
    let tasks: Vec<Option<&str>> = spaces.iter().map(|(_, space)| space.task.as_deref()).collect();
    let params: [Param<'_>; 5] = [&names, &owners, &parts, &namespaces, &tasks];
    for row in connection.query(&NAMES, &params).await? {
        let place = usize::try_from(row.get::<_, i32>("o") - 1).unwrap_or(usize::MAX);
        if let Some(name) = row.get::<_, Option<String>>("sent") {
            changed.sent.push(name);
            continue;
        }
        match row.get::<_, &str>("kind") {
            "queue" => changed.keys.extend(queues.get(place).map(|(key, _)| (*key).clone())),
            "partition" => changed.keys.extend(partitions.get(place).map(|(key, ..)| (*key).clone())),
            _ => {
                let Some((key, space)) = spaces.get(place) else { continue };
                let there: Vec<QueueId> = row.get::<_, Vec<i32>>("queues").into_iter().map(QueueId).collect();
                if there != space.known {
                    changed.keys.insert((*key).clone());
                }
            }
        }
    }
    Ok(changed)
}
