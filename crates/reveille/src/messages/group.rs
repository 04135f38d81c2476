//! Consumer groups become known with their first pop.
//!
//! Owns what this process remembers of them, within a bound. Promises that a group sees every
//! message pushed after its first pop was answered, and of the earlier ones those it asked for:
//! where it begins is decided once. A group that was deleted is made anew by the next pop. Refuses
//! more groups than a queue may have: each has a row for each partition.
//!
//! Next: `register`, which makes one; then [`super::pop`].

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

/// Beyond that the group that was not used for longest is forgotten: it costs one small statement
/// to find again.
const GROUPS_MAX: usize = 50_000;

/// Where a consumer group begins, when its first pop makes it known. Later pops do not change it,
/// and consumers of a plain queue always get everything.
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

#[derive(Debug)]
pub(super) struct Groups {
    registrar: Registrar,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    names: HashMap<QueueName, HashMap<GroupName, Subscriber>>,
    /// The same the other way round. The one that was used last stands at the end.
    ids: LinkedHashMap<GroupId, (QueueName, GroupName), RandomState>,
}

impl Groups {
    pub(super) fn new(context: &Arc<MessagesContext>) -> Self {
        Self { registrar: Registrar::new(context), known: Mutex::default() }
    }

    /// The group, if this process knows it.
    pub(super) fn known(&self, queue: &QueueName, group: &GroupName) -> Option<Subscriber> {
        self.remembered().used(queue, group)
    }

    /// The group, made known if it is not; `None` when the queue is gone.
    pub(super) async fn find_or_register(
        &self,
        queue: NamedQueue<'_>,
        group: &GroupName,
        subscription: Subscription,
    ) -> Result<Option<Subscriber>, MessagesError> {
        let id = self.registrar.found_or_registered(queue, group, subscription).await?;
        let Some(id) = id else { return Ok(None) };
        let subscriber = Subscriber { queue: queue.id, group: id };
        self.remembered().learn(queue.name, group, subscriber);
        Ok(Some(subscriber))
    }

    /// These groups are not there any more, or their queue is not.
    pub(super) fn forget(&self, gone: &[GroupId]) {
        if gone.is_empty() {
            return;
        }
        let mut known = self.remembered();
        for id in gone {
            if let Some((queue, group)) = known.ids.get(id).cloned() {
                known.forget(&queue, &group);
            }
        }
    }

    /// What a group of the queue was known as may be of a queue that is gone, perhaps with another
    /// of its name in its place.
    pub(super) fn forget_in(&self, queue: &QueueName, group: &GroupName) {
        self.remembered().forget(queue, group);
    }

    fn remembered(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
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
    fn of_too_many_groups_the_one_that_was_not_used_for_longest_is_forgotten() {
        let mut known = Known::default();
        let (queue, name) = (QueueName::new("mail").unwrap(), |number| GroupName::new(format!("g{number}")).unwrap());
        let most = i32::try_from(GROUPS_MAX).unwrap();
        for number in 1..=most {
            known.learn(&queue, &name(number), Subscriber { queue: QueueId(1), group: GroupId(number) });
        }
        known.used(&queue, &name(1));

        known.learn(&queue, &name(0), Subscriber { queue: QueueId(1), group: GroupId(0) });

        assert_eq!((known.ids.len(), known.names[&queue].len()), (GROUPS_MAX, GROUPS_MAX));
        assert!(known.used(&queue, &name(1)).is_some() && known.used(&queue, &name(2)).is_none());
    }

    #[test]
    fn a_group_is_forgotten_by_its_id_and_by_its_name() {
        let mut known = Known::default();
        let name = |number: i32| GroupName::new(format!("g{number}")).unwrap();
        let queue = QueueName::new("mail").unwrap();
        for number in 1..=2 {
            known.learn(&queue, &name(number), Subscriber { queue: QueueId(1), group: GroupId(number) });
        }

        // Made anew under another id.
        known.learn(&queue, &name(1), Subscriber { queue: QueueId(1), group: GroupId(3) });
        assert_eq!((known.ids.len(), known.ids.contains_key(&GroupId(1))), (2, false));
        known.forget(&queue, &name(1));
        known.forget(&queue, &name(2));

        assert!(known.ids.is_empty() && known.names.is_empty());
    }
}
