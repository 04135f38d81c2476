//! Resolves the names of a pop to the keys it waits under.
//!
//! Owns no state but the keys of namespaces and tasks (`spaces`). Creates nothing but the consumer
//! group. A queue or partition that does not exist has a key too: the key is woken when a queue or
//! partition is created, and then the names are resolved again.
//!
//! A pop runs no statement here if its keys are cached. Cached are also: that a queue or partition
//! does not exist (until one is created), and the queues of a namespace (until any name changes).
//!
//! Next: [`super::round`].

pub(super) mod names;
mod spaces;

use std::sync::Arc;

use reveille_wake::DispatcherOptions;

use super::request::{Pop, Scope};
use crate::messages::catalog::NamedQueue;
use crate::messages::context::MessagesContext;
use crate::messages::error::MessagesError;
use crate::messages::group::{Groups, Subscriber};
use crate::messages::ids::{PartitionId, QueueId};
use crate::messages::key::{Key, Space};
use crate::messages::name::{PartitionName, QueueName};
use spaces::{SpacePop, Spaces};

#[derive(Debug)]
pub(super) struct Resolver {
    context: Arc<MessagesContext>,
    groups: Arc<Groups>,
    spaces: Spaces,
}

impl Resolver {
    pub(super) fn new(context: &Arc<MessagesContext>, groups: &Arc<Groups>) -> Self {
        Self { context: Arc::clone(context), groups: Arc::clone(groups), spaces: Spaces::default() }
    }

    /// The keys, if this process has them cached.
    pub(super) fn cached_keys(&self, pop: &Pop) -> Option<Arc<[Key]>> {
        match &pop.scope {
            Scope::Queue(queue) => match self.groups.known(queue, &pop.group) {
                Some(subscriber) => Some([claim_key(subscriber, None)].into()),
                None => self.absent(Key::Queue(queue.clone())),
            },
            Scope::Partition(queue, partition) => {
                let Some(subscriber) = self.groups.known(queue, &pop.group) else {
                    return self.absent(Key::Queue(queue.clone()));
                };
                let entry =
                    self.context.catalog.recall(queue, partition).filter(|entry| entry.queue == subscriber.queue);
                match entry {
                    Some(entry) => Some([claim_key(subscriber, Some(entry.id))].into()),
                    None => self.absent(Key::Partition(subscriber.queue, partition.clone())),
                }
            }
            Scope::Space { namespace, task } => {
                let (namespace, task) = (namespace.as_ref(), task.as_ref());
                self.spaces.recall(&self.context.notifier, SpacePop { namespace, task, group: &pop.group })
            }
        }
    }

    /// The keys, as the database has them now.
    pub(super) async fn keys(&self, pop: &Pop) -> Result<Arc<[Key]>, MessagesError> {
        match &pop.scope {
            Scope::Queue(queue) => Ok([self.queue_key(pop, queue).await?].into()),
            Scope::Partition(queue, partition) => Ok([self.partition_key(pop, queue, partition).await?].into()),
            Scope::Space { namespace, task } => self.space_keys(pop, namespace.as_ref(), task.as_ref()).await,
        }
    }

    /// The names mean something else than this process remembers: the next pop reads them from the
    /// database.
    pub(super) fn forget(&self, pop: &Pop) {
        match &pop.scope {
            Scope::Queue(queue) | Scope::Partition(queue, _) => self.groups.forget_in(queue, &pop.group),
            Scope::Space { namespace, task } => {
                let (namespace, task) = (namespace.as_ref(), task.as_ref());
                self.spaces.forget(SpacePop { namespace, task, group: &pop.group });
            }
        }
    }

    fn absent(&self, key: Key) -> Option<Arc<[Key]>> {
        self.context.notifier.hub().is_known_empty(&key).then(|| [key].into())
    }

    async fn queue_key(&self, pop: &Pop, name: &QueueName) -> Result<Key, MessagesError> {
        Ok(match self.subscriber(pop, name).await? {
            Some(subscriber) => claim_key(subscriber, None),
            None => Key::Queue(name.clone()),
        })
    }

    async fn partition_key(
        &self,
        pop: &Pop,
        name: &QueueName,
        partition: &PartitionName,
    ) -> Result<Key, MessagesError> {
        let Some(subscriber) = self.subscriber(pop, name).await? else { return Ok(Key::Queue(name.clone())) };
        let MessagesContext { catalog, database, .. } = &*self.context;
        let queue = NamedQueue { id: subscriber.queue, name };
        match catalog.find_partition_of(database, queue, partition).await? {
            Some(entry) => Ok(claim_key(subscriber, Some(entry.id))),
            None => self.absent_partition_key(pop, queue, partition).await,
        }
    }

    /// For a partition that does not exist no claim is made, so no claim would show that the group
    /// or its queue was deleted, and perhaps re-created. So the group is read from the database
    /// here.
    async fn absent_partition_key(
        &self,
        pop: &Pop,
        queue: NamedQueue<'_>,
        partition: &PartitionName,
    ) -> Result<Key, MessagesError> {
        if self.registered(pop, queue).await?.is_some() {
            return Ok(Key::Partition(queue.id, partition.clone()));
        }
        self.groups.forget_in(queue.name, &pop.group);
        self.context.catalog.forget_queue(queue.id);
        Ok(Key::Queue(queue.name.clone()))
    }

    async fn space_keys(
        &self,
        pop: &Pop,
        namespace: Option<&Arc<str>>,
        task: Option<&Arc<str>>,
    ) -> Result<Arc<[Key]>, MessagesError> {
        let MessagesContext { catalog, database, notifier, .. } = &*self.context;
        let names_version = notifier.names_version();
        let queues = catalog.spaces(database, namespace.map(AsRef::as_ref), task.map(AsRef::as_ref)).await?;
        let mut seen_queues: Vec<QueueId> = queues.iter().map(|queue| queue.id).collect();
        seen_queues.sort_unstable();
        let space = Key::Space(Arc::new(Space { namespace: namespace.cloned(), task: task.cloned(), seen_queues }));
        let mut keys = Vec::with_capacity(queues.len() + 1);
        for queue in queues.iter().take(DispatcherOptions::MAX_KEYS - 1) {
            let subscriber =
                match self.groups.known(&queue.name, &pop.group).filter(|subscriber| subscriber.queue == queue.id) {
                    Some(subscriber) => Some(subscriber),
                    None => self.registered(pop, NamedQueue { id: queue.id, name: &queue.name }).await?,
                };
            keys.extend(subscriber.map(|subscriber| claim_key(subscriber, None)));
        }
        keys.push(space);
        let keys: Arc<[Key]> = keys.into();
        self.spaces.note(SpacePop { namespace, task, group: &pop.group }, &keys, names_version);
        Ok(keys)
    }

    async fn subscriber(&self, pop: &Pop, name: &QueueName) -> Result<Option<Subscriber>, MessagesError> {
        if let Some(subscriber) = self.groups.known(name, &pop.group) {
            return Ok(Some(subscriber));
        }
        let MessagesContext { catalog, database, .. } = &*self.context;
        let Some(queue) = catalog.queue(database, name).await? else { return Ok(None) };
        let found = self.registered(pop, NamedQueue { id: queue.id, name }).await?;
        if found.is_none() {
            catalog.forget_queue(queue.id);
        }
        Ok(found)
    }

    async fn registered(&self, pop: &Pop, queue: NamedQueue<'_>) -> Result<Option<Subscriber>, MessagesError> {
        self.groups.find_or_register(queue, &pop.group, pop.subscription).await
    }
}

fn claim_key(subscriber: Subscriber, partition: Option<PartitionId>) -> Key {
    Key::Claim { queue: subscriber.queue, group: subscriber.group, partition }
}
