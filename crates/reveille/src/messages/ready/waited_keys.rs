//! The index of waited keys: finds the keys of this process that an announcement is about.
//!
//! Owns every key that a pop waits for or may come back for, and the partitions that were announced
//! to each group. Promises that an announcement finds every key which is waited for, or known to be
//! empty. Promises also that one more key costs the same however many there are: every pop adds its
//! keys here, and pushes wait for the same lock.
//!
//! Holds at most 100,000 keys. When it is full, the key added longest ago that no pop waits for is
//! forgotten, and the hub forgets that it was empty. If no such key is found, the new key is left
//! out, and until all waited keys fit again every announcement wakes the whole hub.
//!
//! ```text
//! WaitedKeys ── by queue ──▶ QueueKeys ── by group ──▶ AnnouncedPartitions
//! ```
//!
//! Next: `room`, which makes room for one more key; [`crate::messages::pop`], whose claim rounds
//! take the announced partitions.

mod room;

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::RandomState;

use hashlink::LinkedHashMap;
use tokio::time::Instant;

use super::hint::About;
use crate::messages::ids::{GroupId, PartitionId, QueueId};
use crate::messages::key::Key;
use room::Overflow;

/// At most so many keys are kept; see the header.
const KEYS_MAX: usize = 100_000;
/// How many announced partitions are remembered for each group.
const REMEMBERED_MAX: usize = 512;

/// Partitions that were announced to a group: where to claim without a search.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::messages) struct Announced {
    /// In the order of their announcements.
    pub(in crate::messages) partitions: Vec<PartitionId>,
    /// More were announced than the caller has room for; these stay.
    pub(in crate::messages) left_some: bool,
    /// No partition that was announced since the last call was forgotten. If one was, only a search
    /// finds it.
    pub(in crate::messages) forgot_none: bool,
}

#[derive(Debug, Default)]
pub(super) struct WaitedKeys {
    /// With the time each was last added; the latest stands at the end.
    keys: LinkedHashMap<Key, Instant, RandomState>,
    queues: HashMap<QueueId, QueueKeys>,
    /// Keys of queues that do not exist yet, and of namespaces and tasks.
    unresolved: HashSet<Key>,
    /// Some keys that may be waited for found no room.
    overflow: Option<Overflow>,
}

impl WaitedKeys {
    /// A pop is about to wait for these keys. `forget` makes the hub forget a key, and returns
    /// whether no pop waits for it.
    pub(super) fn add(&mut self, keys: &[Key], forget: impl Fn(&Key) -> bool) {
        let now = Instant::now();
        for key in keys {
            if let Some(added_at) = self.keys.to_back(key) {
                *added_at = now;
            } else if self.make_room(now, &forget) {
                self.insert(key.clone(), now);
            } else {
                self.note_overflow(now);
            }
        }
    }

    fn insert(&mut self, key: Key, now: Instant) {
        if let Some(queue) = queue_of(&key) {
            self.queues.entry(queue).or_default().add(&key);
        } else {
            self.unresolved.insert(key.clone());
        }
        self.keys.insert(key, now);
    }

    fn remove(&mut self, key: &Key) {
        self.keys.remove(key);
        self.unresolved.remove(key);
        let Some(queue) = queue_of(key) else { return };
        if self.queues.get_mut(&queue).is_some_and(|keys| keys.remove(key)) {
            self.queues.remove(&queue);
        }
    }

    /// Every key that the hint may be about; `None` for all keys of the hub.
    pub(super) fn keys_about(&self, about: About) -> Option<Vec<Key>> {
        if self.overflow.is_some() {
            return None;
        }
        Some(match about {
            About::Everything => return None,
            About::Names => self.unresolved.iter().cloned().collect(),
            About::Queue(queue) => self.of_queue(queue, |keys| keys.about_queue(queue)),
            About::Partition(queue, partition) => self.of_queue(queue, |keys| keys.about_partition(queue, partition)),
            About::Group(queue, group, partition) => {
                self.of_queue(queue, |keys| keys.about_group(queue, group, partition))
            }
            About::LeaseEnd(queue, group) => self.of_queue(queue, |keys| keys.about_group(queue, group, None)),
        })
    }

    fn of_queue(&self, queue: QueueId, find: impl FnOnce(&QueueKeys) -> Vec<Key>) -> Vec<Key> {
        self.queues.get(&queue).map(find).unwrap_or_default()
    }

    /// Messages were pushed to these partitions.
    pub(super) fn note_pushed(&mut self, queue: QueueId, partitions: &[PartitionId]) {
        let Some(keys) = self.queues.get_mut(&queue) else { return };
        for announced in keys.any_partition.values_mut() {
            for partition in partitions {
                announced.note(*partition);
            }
        }
    }

    /// A lease of the partition ended, and the group has more messages in it.
    pub(super) fn note_freed(&mut self, queue: QueueId, group: GroupId, partition: PartitionId) {
        let announced = self.queues.get_mut(&queue).and_then(|keys| keys.any_partition.get_mut(&group));
        if let Some(announced) = announced {
            announced.note(partition);
        }
    }

    /// Remembers the partition that a hint names. Returns whether it names one.
    pub(super) fn note_hint(&mut self, about: About) -> bool {
        match about {
            About::Partition(queue, partition) => self.note_pushed(queue, &[partition]),
            About::Group(queue, group, Some(partition)) => self.note_freed(queue, group, partition),
            About::Everything | About::Names | About::Queue(_) | About::Group(_, _, None) | About::LeaseEnd(..) => {
                return false;
            }
        }
        true
    }

    pub(super) fn take_announced(&mut self, queue: QueueId, group: GroupId, most: usize) -> Announced {
        let announced = self.queues.get_mut(&queue).and_then(|keys| keys.any_partition.get_mut(&group));
        announced.map(|announced| announced.take(most)).unwrap_or_default()
    }
}

/// The queue that the key belongs to; none for a name.
fn queue_of(key: &Key) -> Option<QueueId> {
    match key {
        Key::Claim { queue, .. } | Key::Partition(queue, _) => Some(*queue),
        Key::Queue(_) | Key::Space(_) => None,
    }
}

/// The keys of one queue.
#[derive(Debug, Default)]
struct QueueKeys {
    /// How many keys there are; with the last one, all of this is forgotten.
    count: usize,
    /// Groups whose consumers take any partition, with those that were announced to them.
    any_partition: HashMap<GroupId, AnnouncedPartitions>,
    /// Groups whose consumers wait for one partition, by the partition.
    one_partition: HashMap<PartitionId, HashSet<GroupId>>,
    /// Keys of partitions that do not exist yet: every push to the queue may have created one.
    absent: HashSet<Key>,
}

impl QueueKeys {
    fn add(&mut self, key: &Key) {
        self.count += 1;
        match key {
            Key::Claim { group, partition: None, .. } => _ = self.any_partition.entry(*group).or_default(),
            Key::Claim { group, partition: Some(partition), .. } => {
                self.one_partition.entry(*partition).or_default().insert(*group);
            }
            Key::Partition(..) => _ = self.absent.insert(key.clone()),
            Key::Queue(_) | Key::Space(_) => {}
        }
    }

    /// Whether no key is left.
    fn remove(&mut self, key: &Key) -> bool {
        self.count -= 1;
        match key {
            Key::Claim { group, partition: None, .. } => _ = self.any_partition.remove(group),
            Key::Claim { group, partition: Some(partition), .. } => {
                let groups = self.one_partition.get_mut(partition);
                let last = groups.is_some_and(|groups| groups.remove(group) && groups.is_empty());
                if last {
                    self.one_partition.remove(partition);
                }
            }
            Key::Partition(..) => _ = self.absent.remove(key),
            Key::Queue(_) | Key::Space(_) => {}
        }
        self.count == 0
    }

    /// All keys.
    fn about_queue(&self, queue: QueueId) -> Vec<Key> {
        let one = self
            .one_partition
            .iter()
            .flat_map(|(partition, groups)| groups.iter().map(|group| claim_key(queue, *group, Some(*partition))));
        self.any_keys(queue).chain(one).chain(self.absent.iter().cloned()).collect()
    }

    /// The keys of all groups that may take from the partition.
    fn about_partition(&self, queue: QueueId, partition: PartitionId) -> Vec<Key> {
        let groups = self.one_partition.get(&partition).into_iter().flatten();
        let one = groups.map(|group| claim_key(queue, *group, Some(partition)));
        self.any_keys(queue).chain(one).chain(self.absent.iter().cloned()).collect()
    }

    /// The keys of one group that may take from the partition; all of its keys without one.
    fn about_group(&self, queue: QueueId, group: GroupId, partition: Option<PartitionId>) -> Vec<Key> {
        let any = self.any_partition.contains_key(&group).then(|| claim_key(queue, group, None)).into_iter();
        let has = |groups: &HashSet<GroupId>| groups.contains(&group);
        match partition {
            Some(partition) => {
                let waits = self.one_partition.get(&partition).is_some_and(has);
                any.chain(waits.then(|| claim_key(queue, group, Some(partition)))).collect()
            }
            None => {
                let waited = self.one_partition.iter().filter(|(_, groups)| has(groups));
                any.chain(waited.map(|(partition, _)| claim_key(queue, group, Some(*partition)))).collect()
            }
        }
    }

    fn any_keys(&self, queue: QueueId) -> impl Iterator<Item = Key> {
        self.any_partition.keys().map(move |group| claim_key(queue, *group, None))
    }
}

fn claim_key(queue: QueueId, group: GroupId, partition: Option<PartitionId>) -> Key {
    Key::Claim { queue, group, partition }
}

/// The partitions that were announced to a group since it last took them, each once.
#[derive(Debug, Default)]
struct AnnouncedPartitions {
    order: VecDeque<PartitionId>,
    held: HashSet<PartitionId>,
    /// None was left out for want of room. False at first: nobody knows what was announced before
    /// the group's key was added.
    forgot_none: bool,
}

impl AnnouncedPartitions {
    fn note(&mut self, partition: PartitionId) {
        if self.held.contains(&partition) {
            return;
        }
        if self.order.len() == REMEMBERED_MAX {
            self.forgot_none = false;
            return;
        }
        self.held.insert(partition);
        self.order.push_back(partition);
    }

    fn take(&mut self, most: usize) -> Announced {
        let partitions: Vec<PartitionId> = self.order.drain(..most.min(self.order.len())).collect();
        for partition in &partitions {
            self.held.remove(partition);
        }
        let forgot_none = std::mem::replace(&mut self.forgot_none, true);
        Announced { partitions, left_some: !self.order.is_empty(), forgot_none }
    }
}

#[cfg(test)]
mod tests;
