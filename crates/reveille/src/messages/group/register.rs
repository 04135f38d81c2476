//! Registers a consumer group at its first pop: a row for the group, and a cursor for each
//! partition.
//!
//! Promises that one statement creates a bounded number of cursors, however many partitions there
//! are, and that registration delays nobody. The queue's row, which the creation of a partition
//! needs too, is locked for a moment at the beginning and at the end.
//!
//! What may happen between the steps, and why nothing is lost:
//! - A partition is created. Its number is above `through`, because the first step waits until no
//!   other partition is being created. The last step locks the queue's row again, and creates the
//!   cursors of these partitions. The group begins at their beginning.
//! - A message is pushed to a partition where the group has its cursor already. If the partition is
//!   marked ready before the queue knows the group, this cursor is left out. The catching up, which
//!   comes after that, marks it ready.
//! - The process dies, or its client goes away. The cursors stay, under a group that the queue does
//!   not know yet. The next pop of the group, on any node, goes on with them; if there is none,
//!   upkeep removes them after an hour.
//! - Two processes create the same group. A cursor is created once; the second process finds that
//!   it exists. Within one process the second pop waits.
//!
//! Next: [`super::super::pop`].

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use tokio::sync::OwnedMutexGuard;

use super::Subscription;
use crate::messages::catalog::NamedQueue;
use crate::messages::context::MessagesContext;
use crate::messages::error::MessagesError;
use crate::messages::ids::GroupId;
use crate::messages::name::GroupName;
use crate::messages::statements::{CATCH_UP, FIND_GROUP, FINISH_GROUP, MAKE_CURSORS, REGISTER};

/// How many cursors one statement creates or reads.
const CURSORS_MAX: i32 = 2000;

/// The groups that are being created in this process, each with a lock for the pops that wait.
type Turns = HashMap<GroupId, Arc<tokio::sync::Mutex<()>>>;

#[derive(Debug)]
pub(super) struct Registrar {
    context: Arc<MessagesContext>,
    turns: Mutex<Turns>,
}

impl Registrar {
    pub(super) fn new(context: &Arc<MessagesContext>) -> Self {
        Self { context: Arc::clone(context), turns: Mutex::default() }
    }

    /// The group's id; `None` if the queue is gone. Each step takes a connection and gives it back,
    /// so that the first pops of other groups come in between.
    pub(super) async fn found_or_registered(
        &self,
        queue: NamedQueue<'_>,
        group: &GroupName,
        subscription: Subscription,
    ) -> Result<Option<GroupId>, MessagesError> {
        let found =
            self.context.database.acquire().await?.query_opt(&FIND_GROUP, &[&queue.id.0, &group.as_str()]).await?;
        let (id, settled) = match found {
            Some(row) => (row.get::<_, i32>("id"), row.get::<_, bool>("settled")),
            None => match self.register(queue, group, subscription).await? {
                Some(id) => (id, false),
                None => return Ok(None),
            },
        };
        if !settled {
            self.catch_up(id).await?;
        }
        Ok(Some(GroupId(id)))
    }

    async fn register(
        &self,
        queue: NamedQueue<'_>,
        group: &GroupName,
        subscription: Subscription,
    ) -> Result<Option<i32>, MessagesError> {
        let (mode, from) = beginning(group, subscription);
        // Other groups must not be able to shut out the consumers of a plain queue.
        let limit = if group.is_queue_mode() { i32::MAX } else { self.context.options.groups_max };
        let params: [crate::database::Param<'_>; 6] =
            [&queue.id.0, &group.as_str(), &mode, &from, &limit, &CURSORS_MAX];
        let row = self.context.database.acquire().await?.query_opt(&REGISTER, &params).await?;
        let Some(row) = row else { return Ok(None) };
        let full = || MessagesError::TooManyGroups { queue: queue.name.to_string(), limit };
        let id = row.get::<_, Option<i32>>("grp").ok_or_else(full)?;
        match row.get::<_, Option<i32>>("through") {
            Some(through) => self.make(id, through).await,
            None => Ok(Some(id)),
        }
    }

    /// Creates the cursors of a group that was begun, then makes the group known to its queue.
    async fn make(&self, group: i32, through: i32) -> Result<Option<i32>, MessagesError> {
        let turn = self.turn(GroupId(group)).await;
        let database = &self.context.database;
        let mut after = 0;
        loop {
            let params: [crate::database::Param<'_>; 4] = [&group, &after, &through, &CURSORS_MAX];
            let row = database.acquire().await?.query_opt(&MAKE_CURSORS, &params).await?;
            let Some(last) = row.and_then(|row| row.get::<_, Option<i32>>("last")) else { break };
            after = last;
        }
        let row = database.acquire().await?.query_opt(&FINISH_GROUP, &[&group, &through]).await?;
        drop(turn);
        Ok(row.is_some_and(|row| row.get("known")).then_some(group))
    }

    /// Marks ready, for this group, the partitions that were marked ready for the others before
    /// this group was visible. In transactions of their own, after that. If a process dies in
    /// between, the next pop that finds the group unsettled does it.
    async fn catch_up(&self, group: i32) -> Result<(), MessagesError> {
        let mut after = 0;
        loop {
            let connection = self.context.database.acquire().await?;
            let row = connection.query_opt(&CATCH_UP, &[&group, &after, &CURSORS_MAX]).await?;
            let Some(row) = row.filter(|row| row.get("more")) else { return Ok(()) };
            after = row.get("last");
        }
    }

    async fn turn(&self, group: GroupId) -> Turn<'_> {
        let mine = Arc::clone(self.turns().entry(group).or_default());
        let held = mine.lock_owned().await;
        Turn { registrar: self, group, held: Some(held) }
    }

    fn turns(&self) -> MutexGuard<'_, Turns> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to create a group, in this process. Pops that wait for it share its lock; the last one
/// removes the lock.
struct Turn<'r> {
    registrar: &'r Registrar,
    group: GroupId,
    held: Option<OwnedMutexGuard<()>>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut turns = self.registrar.turns();
        self.held = None;
        if turns.get(&self.group).is_some_and(|turn| Arc::strong_count(turn) == 1) {
            turns.remove(&self.group);
        }
    }
}

fn beginning(group: &GroupName, subscription: Subscription) -> (&'static str, Option<SystemTime>) {
    match subscription {
        _ if group.is_queue_mode() => ("all", None),
        Subscription::All => ("all", None),
        Subscription::New => ("new", None),
        Subscription::From(time) => ("from", Some(time)),
    }
}
