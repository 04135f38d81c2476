//! From the names a consumer gives to the keys it waits under.
//!
//! Nothing is made here but the consumer group. What is not there has a key too: it is rung when something of that kind
//! comes into being, and then the names are resolved again.

use std::sync::Arc;

use super::{Place, Pop};
use crate::messages::error::MessagesError;
use crate::messages::ground::Ground;
use crate::messages::group::{Groups, Subscriber};
use crate::messages::ids::{PartitionId, QueueId};
use crate::messages::key::{Key, Space};
use crate::messages::name::{PartitionName, QueueName};
use reveille_wake::DispatcherOptions;

/// The keys, if this process knows them already.
pub(super) fn known(groups: &Groups, pop: &Pop) -> Option<Arc<[Key]>> {
    match &pop.place {
        Place::Queue(queue) => groups.known(queue, &pop.group).map(|known| [claim(known, None)].into()),
        Place::Partition(..) | Place::Space { .. } => None,
    }
}

pub(super) async fn keys(ground: &Ground, groups: &Groups, pop: &Pop) -> Result<Arc<[Key]>, MessagesError> {
    match &pop.place {
        Place::Queue(queue) => Ok([queue_key(ground, groups, pop, queue).await?].into()),
        Place::Partition(queue, partition) => Ok([partition_key(ground, groups, pop, queue, partition).await?].into()),
        Place::Space { namespace, task } => space_keys(ground, groups, pop, namespace.as_ref(), task.as_ref()).await,
    }
}

async fn queue_key(ground: &Ground, groups: &Groups, pop: &Pop, name: &QueueName) -> Result<Key, MessagesError> {
    Ok(match subscriber(ground, groups, pop, name).await? {
        Some(known) => claim(known, None),
        None => Key::Queue(name.clone()),
    })
}

async fn partition_key(
    ground: &Ground,
    groups: &Groups,
    pop: &Pop,
    name: &QueueName,
    partition: &PartitionName,
) -> Result<Key, MessagesError> {
    let Some(known) = subscriber(ground, groups, pop, name).await? else { return Ok(Key::Queue(name.clone())) };
    match ground.catalog.find_partition(&ground.database, name, partition).await? {
        Some(entry) if entry.queue == known.queue => Ok(claim(known, Some(entry.id))),
        Some(_) | None => Ok(Key::Partition(known.queue, partition.clone())),
    }
}

async fn space_keys(
    ground: &Ground,
    groups: &Groups,
    pop: &Pop,
    namespace: Option<&Arc<str>>,
    task: Option<&Arc<str>>,
) -> Result<Arc<[Key]>, MessagesError> {
    let queues = ground.catalog.spaces(&ground.database, namespace.map(AsRef::as_ref), task.map(AsRef::as_ref)).await?;
    let mut known: Vec<QueueId> = queues.iter().map(|queue| queue.id).collect();
    known.sort_unstable();
    let space = Key::Space(Arc::new(Space { namespace: namespace.cloned(), task: task.cloned(), known }));
    let mut keys = Vec::with_capacity(queues.len() + 1);
    for queue in queues.iter().take(DispatcherOptions::MAX_KEYS - 1) {
        let known = match groups.known(&queue.name, &pop.group).filter(|known| known.queue == queue.id) {
            Some(known) => Some(known),
            None => {
                groups.find_or_register(&ground.database, (queue.id, &queue.name), &pop.group, pop.subscription).await?
            }
        };
        keys.extend(known.map(|known| claim(known, None)));
    }
    keys.push(space);
    Ok(keys.into())
}

async fn subscriber(
    ground: &Ground,
    groups: &Groups,
    pop: &Pop,
    name: &QueueName,
) -> Result<Option<Subscriber>, MessagesError> {
    if let Some(known) = groups.known(name, &pop.group) {
        return Ok(Some(known));
    }
    let Some(queue) = ground.catalog.queue(&ground.database, name).await? else { return Ok(None) };
    let found = groups.find_or_register(&ground.database, (queue.id, name), &pop.group, pop.subscription).await?;
    if found.is_none() {
        ground.catalog.forget_queue(queue.id);
    }
    Ok(found)
}

fn claim(known: Subscriber, partition: Option<PartitionId>) -> Key {
    Key::Claim { queue: known.queue, group: known.group, partition }
}
