//! The keys of one queue, and what was said by place to each of its groups.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::messages::ids::{GroupId, PartitionId, QueueId};
use crate::messages::key::Key;

/// How many partitions of a queue are remembered for each group, for claims that need not search.
pub(super) const RECENT_MAX: usize = 512;

/// The keys of one queue.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// How many keys are remembered; with the last one, all this is forgotten.
    keys: usize,
    pub(super) any: HashMap<GroupId, Recent>,
    pub(super) named: HashMap<PartitionId, HashSet<GroupId>>,
    /// Partitions that are not there yet.
    pub(super) absent: HashSet<Key>,
}

/// What was said by place to a group.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::messages) struct News {
    pub(in crate::messages) partitions: Vec<PartitionId>,
    /// There is more than was asked for.
    pub(in crate::messages) left: bool,
    /// Nothing that was said by place was forgotten since this was last asked.
    pub(in crate::messages) whole: bool,
}

#[derive(Debug, Default)]
pub(super) struct Recent {
    order: VecDeque<PartitionId>,
    held: HashSet<PartitionId>,
    /// Nothing was left out for want of room. Not so for a group that was only just met: who knows
    /// what was said before.
    whole: bool,
}

impl Places {
    pub(super) fn add(&mut self, key: &Key) {
        self.keys += 1;
        match key {
            Key::Claim { group, partition: None, .. } => _ = self.any.entry(*group).or_default(),
            Key::Claim { group, partition: Some(partition), .. } => {
                self.named.entry(*partition).or_default().insert(*group);
            }
            Key::Partition(..) => _ = self.absent.insert(key.clone()),
            Key::Queue(_) | Key::Space(_) => {}
        }
    }

    /// Whether no key is left.
    pub(super) fn remove(&mut self, key: &Key) -> bool {
        self.keys -= 1;
        match key {
            Key::Claim { group, partition: None, .. } => _ = self.any.remove(group),
            Key::Claim { group, partition: Some(partition), .. } => {
                let groups = self.named.get_mut(partition);
                let last = groups.is_some_and(|groups| groups.remove(group) && groups.is_empty());
                if last {
                    self.named.remove(partition);
                }
            }
            Key::Partition(..) => _ = self.absent.remove(key),
            Key::Queue(_) | Key::Space(_) => {}
        }
        self.keys == 0
    }

    pub(super) fn any(&self, queue: QueueId) -> impl Iterator<Item = Key> {
        self.any.keys().map(move |group| claim(queue, *group, None))
    }

    /// The keys of one group that name a partition, or that name this one.
    pub(super) fn named_of(&self, queue: QueueId, group: GroupId, partition: Option<PartitionId>) -> Vec<Key> {
        let has = |groups: &HashSet<GroupId>| groups.contains(&group);
        match partition {
            Some(partition) => {
                let waits = self.named.get(&partition).is_some_and(has);
                waits.then(|| claim(queue, group, Some(partition))).into_iter().collect()
            }
            None => {
                let named = self.named.iter().filter(|(_, groups)| has(groups));
                named.map(|(partition, _)| claim(queue, group, Some(*partition))).collect()
            }
        }
    }
}

impl Recent {
    pub(super) fn note(&mut self, partition: PartitionId) {
        if self.held.contains(&partition) {
            return;
        }
        if self.order.len() == RECENT_MAX {
            self.whole = false;
            return;
        }
        self.held.insert(partition);
        self.order.push_back(partition);
    }

    pub(super) fn take(&mut self, most: usize) -> News {
        let partitions: Vec<PartitionId> = self.order.drain(..most.min(self.order.len())).collect();
        for partition in &partitions {
            self.held.remove(partition);
        }
        News { partitions, left: !self.order.is_empty(), whole: std::mem::replace(&mut self.whole, true) }
    }
}

pub(super) fn claim(queue: QueueId, group: GroupId, partition: Option<PartitionId>) -> Key {
    Key::Claim { queue, group, partition }
}
