//! Consumer groups, which are created by their first pop.
//!
//! Owns what this process remembers of them, within a bound. Promises that a group sees every
//! message pushed after its first pop was answered, and those of the earlier messages that its
//! subscription includes: where a group begins is decided once. A deleted group is re-created by
//! its next pop. Refuses more groups than a queue may have: each has a row for each partition.
//!
//! Next: `register`, which creates a group; then [`super::pop`].

mod register;

use std::collections::HashMap;
use std::hash::RandomState;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use hashlink::LinkedHashMap;

use super::catalog::NamedQueue;
use super::context::MessagesContext;
use super::error::MessagesError;
use super::ids::{GroupId, QueueId};
use super::name::{GroupName, QueueName};
use register::Registrar;

/// Beyond that the least recently used group is forgotten: one small statement finds it again.
const GROUPS_MAX: usize = 50_000;

/// Where a consumer group begins. Its first pop decides; later pops do not change it, and consumers
/// of a plain queue always get everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Subscription {
    /// With the oldest message that is kept.
    #[default]
    All,
    /// With what is pushed from now on.
    New,
    /// With what was pushed at that time or later.
    From(SystemTime),
}

/// A group of a queue, by the ids of their rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Subscriber {
    pub(super) queue: QueueId,
    pub(super) group: GroupId,
}

#[derive(Debug)]
pub(super) struct Groups {
    registrar: Registrar,
    cache: Mutex<GroupCache>,
}

#[derive(Debug, Default)]
struct GroupCache {
    names: HashMap<QueueName, HashMap<GroupName, Subscriber>>,
    /// The names of each group. The most recently used stands at the end.
    ids: LinkedHashMap<GroupId, (QueueName, GroupName), RandomState>,
}

impl Groups {
    pub(super) fn new(context: &Arc<MessagesContext>) -> Self {
        Self { registrar: Registrar::new(context), cache: Mutex::default() }
    }

    /// The group, if this process remembers it.
    pub(super) fn known(&self, queue: &QueueName, group: &GroupName) -> Option<Subscriber> {
        self.cache().used(queue, group)
    }

    /// The group, created if it does not exist; `None` if the queue is gone.
    pub(super) async fn find_or_register(
        &self,
        queue: NamedQueue<'_>,
        group: &GroupName,
        subscription: Subscription,
    ) -> Result<Option<Subscriber>, MessagesError> {
        let id = self.registrar.found_or_registered(queue, group, subscription).await?;
        let Some(id) = id else { return Ok(None) };
        let subscriber = Subscriber { queue: queue.id, group: id };
        self.cache().learn(queue.name, group, subscriber);
        Ok(Some(subscriber))
    }

    /// These groups do not exist any more, or their queue does not.
    pub(super) fn forget(&self, gone: &[GroupId]) {
        if gone.is_empty() {
            return;
        }
        let mut cache = self.cache();
        for id in gone {
            if let Some((queue, group)) = cache.ids.get(id).cloned() {
                cache.forget(&queue, &group);
            }
        }
    }

    /// What is remembered of the group may be outdated: its queue may be gone, perhaps with another
    /// queue of the same name in its place.
    pub(super) fn forget_in(&self, queue: &QueueName, group: &GroupName) {
        self.cache().forget(queue, group);
    }

    fn cache(&self) -> MutexGuard<'_, GroupCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl GroupCache {
    fn used(&mut self, queue: &QueueName, group: &GroupName) -> Option<Subscriber> {
        let subscriber = *self.names.get(queue)?.get(group)?;
        self.ids.to_back(&subscriber.group);
        Some(subscriber)
    }

    fn learn(&mut self, queue: &QueueName, group: &GroupName, subscriber: Subscriber) {
        self.forget(queue, group);
        while self.ids.len() >= GROUPS_MAX {
            let Some((_, (queue, group))) = self.ids.pop_front() else { break };
            self.forget(&queue, &group);
        }
        self.ids.insert(subscriber.group, (queue.clone(), group.clone()));
        self.names.entry(queue.clone()).or_default().insert(group.clone(), subscriber);
    }

    fn forget(&mut self, queue: &QueueName, group: &GroupName) {
        let Some(groups) = self.names.get_mut(queue) else { return };
        if let Some(subscriber) = groups.remove(group) {
            self.ids.remove(&subscriber.group);
        }
        if groups.is_empty() {
            self.names.remove(queue);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_too_many_groups_the_least_recently_used_is_forgotten() {
        let mut cache = GroupCache::default();
        let (queue, name) = (QueueName::new("mail").unwrap(), |number| GroupName::new(format!("g{number}")).unwrap());
        let most = i32::try_from(GROUPS_MAX).unwrap();
        for number in 1..=most {
            cache.learn(&queue, &name(number), Subscriber { queue: QueueId(1), group: GroupId(number) });
        }
        cache.used(&queue, &name(1));

        cache.learn(&queue, &name(0), Subscriber { queue: QueueId(1), group: GroupId(0) });

        assert_eq!((cache.ids.len(), cache.names[&queue].len()), (GROUPS_MAX, GROUPS_MAX));
        assert!(cache.used(&queue, &name(1)).is_some() && cache.used(&queue, &name(2)).is_none());
    }

    #[test]
    fn a_group_is_forgotten_by_its_id_and_by_its_name() {
        let mut cache = GroupCache::default();
        let name = |number: i32| GroupName::new(format!("g{number}")).unwrap();
        let queue = QueueName::new("mail").unwrap();
        for number in 1..=2 {
            cache.learn(&queue, &name(number), Subscriber { queue: QueueId(1), group: GroupId(number) });
        }

        // Re-created under another id.
        cache.learn(&queue, &name(1), Subscriber { queue: QueueId(1), group: GroupId(3) });
        assert_eq!((cache.ids.len(), cache.ids.contains_key(&GroupId(1))), (2, false));
        cache.forget(&queue, &name(1));
        cache.forget(&queue, &name(2));

        assert!(cache.ids.is_empty() && cache.names.is_empty());
    }
}
