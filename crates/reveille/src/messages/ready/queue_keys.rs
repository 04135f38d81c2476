//! The keys of one queue, and the partitions that were announced to its groups.

use std::collections::{HashMap, HashSet};

use super::announced::RecentPartitions;
use crate::messages::ids::{GroupId, PartitionId, QueueId};
use crate::messages::key::Key;

#[derive(Debug, Default)]
pub(super) struct QueueKeys {
    /// How many keys there are; with the last one, all of this is forgotten.
    count: usize,
    /// Groups whose consumers take any partition.
    pub(super) any: HashMap<GroupId, RecentPartitions>,
    /// Groups whose consumers wait for one partition.
    pub(super) named: HashMap<PartitionId, HashSet<GroupId>>,
    /// Partitions that do not exist yet.
    pub(super) absent: HashSet<Key>,
}

impl QueueKeys {
    pub(super) fn add(&mut self, key: &Key) {
        self.count += 1;
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
        self.count -= 1;
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
        self.count == 0
    }

    /// The keys of all groups whose consumers take any partition.
    pub(super) fn any_keys(&self, queue: QueueId) -> impl Iterator<Item = Key> {
        self.any.keys().map(move |group| claim_key(queue, *group, None))
    }

    /// The keys of one group that name this partition, or that name any partition at all.
    pub(super) fn named_keys(&self, queue: QueueId, group: GroupId, partition: Option<PartitionId>) -> Vec<Key> {
        let has = |groups: &HashSet<GroupId>| groups.contains(&group);
        match partition {
            Some(partition) => {
                let waits = self.named.get(&partition).is_some_and(has);
                waits.then(|| claim_key(queue, group, Some(partition))).into_iter().collect()
            }
            None => {
                let named = self.named.iter().filter(|(_, groups)| has(groups));
                named.map(|(partition, _)| claim_key(queue, group, Some(*partition))).collect()
            }
        }
    }
}

pub(super) fn claim_key(queue: QueueId, group: GroupId, partition: Option<PartitionId>) -> Key {
    Key::Claim { queue, group, partition }
}
