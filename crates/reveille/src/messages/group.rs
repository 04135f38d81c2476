//! Consumer groups become known with their first pop.
//!
//! Owns what this process remembers of them, within a bound. Promises that a group sees every message pushed after its first
//! pop was answered, and of the earlier ones those it asked for: where it begins is decided once. A group that was deleted
//! is made anew by the next pop.
//!
//! Next: [`super::pop`].

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use super::error::MessagesError;
use super::ids::{GroupId, QueueId};
use super::name::{GroupName, QueueName};
use super::statements::{CATCH_UP, FIND_GROUP, REGISTER};
use crate::database::{Connection, Database, DatabaseError};

/// More are forgotten all at once: they cost one small statement each to find again.
const GROUPS_MAX: usize = 50_000;

/// Where a consumer group begins, when its first pop makes it known. Later pops do not change it, and consumers of a plain
/// queue always get everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Subscription {
    /// With the oldest message there is.
    #[default]
    All,
    /// With what is pushed from now on.
    New,
    /// With what was pushed at that time or later.
    From(SystemTime),
}

/// A group of a queue, as rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Subscriber {
    pub(super) queue: QueueId,
    pub(super) group: GroupId,
}

#[derive(Debug, Default)]
pub(super) struct Groups {
    known: Mutex<HashMap<QueueName, HashMap<GroupName, Subscriber>>>,
}

impl Groups {
    /// The group, if this process knows it.
    pub(super) fn known(&self, queue: &QueueName, group: &GroupName) -> Option<Subscriber> {
        self.names().get(queue)?.get(group).copied()
    }

    /// The group, made known if it is not; `None` when the queue is gone.
    pub(super) async fn find_or_register(
        &self,
        database: &Database,
        (queue, queue_name): (QueueId, &QueueName),
        group: &GroupName,
        subscription: Subscription,
    ) -> Result<Option<Subscriber>, MessagesError> {
        let connection = database.acquire().await?;
        let Some(id) = found_or_registered(&connection, queue, group, subscription).await? else { return Ok(None) };
        let subscriber = Subscriber { queue, group: id };
        let mut names = self.names();
        if names.values().map(HashMap::len).sum::<usize>() >= GROUPS_MAX {
            names.clear();
        }
        names.entry(queue_name.clone()).or_default().insert(group.clone(), subscriber);
        Ok(Some(subscriber))
    }

    /// These groups are not there any more, or their queue is not.
    pub(super) fn forget(&self, gone: &[GroupId]) {
        self.names().retain(|_, groups| {
            groups.retain(|_, subscriber| !gone.contains(&subscriber.group));
            !groups.is_empty()
        });
    }

    /// What a group of the queue was known as may be of a queue that is gone, perhaps with another of its name in its place.
    pub(super) fn forget_in(&self, queue: &QueueName, group: &GroupName) {
        if let Some(groups) = self.names().get_mut(queue) {
            groups.remove(group);
        }
    }

    fn names(&self) -> MutexGuard<'_, HashMap<QueueName, HashMap<GroupName, Subscriber>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn found_or_registered(
    connection: &Connection,
    queue: QueueId,
    group: &GroupName,
    subscription: Subscription,
) -> Result<Option<GroupId>, DatabaseError> {
    let found = connection.query_opt(&FIND_GROUP, &[&queue.0, &group.as_str()]).await?;
    let (id, settled) = match found {
        Some(row) => (row.get::<_, i32>("id"), row.get::<_, bool>("settled")),
        None => {
            let (mode, from) = beginning(group, subscription);
            let row = connection.query_opt(&REGISTER, &[&queue.0, &group.as_str(), &mode, &from]).await?;
            let Some(id) = row.and_then(|row| row.get::<_, Option<i32>>("grp")) else { return Ok(None) };
            (id, false)
        }
    };
    if !settled {
        // In a transaction of its own, after the group is visible to everybody: what was spread to the other groups before
        // that, this one is told of now. Whoever finds a group unsettled does it for one that died in between.
        connection.execute(&CATCH_UP, &[&id]).await?;
    }
    Ok(Some(GroupId(id)))
}

fn beginning(group: &GroupName, subscription: Subscription) -> (&'static str, Option<SystemTime>) {
    match subscription {
        _ if group.is_queue_mode() => ("all", None),
        Subscription::All => ("all", None),
        Subscription::New => ("new", None),
        Subscription::From(time) => ("from", Some(time)),
    }
}
