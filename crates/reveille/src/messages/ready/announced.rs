//! The partitions that were announced to a group: where to claim without a search.
//!
//! Owns a bounded number of partitions for each group, in the order of their announcements.
//! Promises to report when it could not remember all of them: then a search must find the others.

use std::collections::{HashSet, VecDeque};

use crate::messages::ids::PartitionId;

/// How many announced partitions are remembered for each group.
pub(super) const REMEMBERED_MAX: usize = 512;

/// The partitions that were announced to a group.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::messages) struct Announced {
    pub(in crate::messages) partitions: Vec<PartitionId>,
    /// More were announced than the caller has room for; these stay.
    pub(in crate::messages) more: bool,
    /// No announced partition was forgotten since the last call.
    pub(in crate::messages) complete: bool,
}

/// The partitions that were announced to a group since it last took them.
#[derive(Debug, Default)]
pub(super) struct RecentPartitions {
    order: VecDeque<PartitionId>,
    held: HashSet<PartitionId>,
    /// None was left out for want of room. False at first: nobody knows what was announced before
    /// the group's key was added.
    complete: bool,
}

impl RecentPartitions {
    pub(super) fn note(&mut self, partition: PartitionId) {
        if self.held.contains(&partition) {
            return;
        }
        if self.order.len() == REMEMBERED_MAX {
            self.complete = false;
            return;
        }
        self.held.insert(partition);
        self.order.push_back(partition);
    }

    pub(super) fn take(&mut self, most: usize) -> Announced {
        let partitions: Vec<PartitionId> = self.order.drain(..most.min(self.order.len())).collect();
        for partition in &partitions {
            self.held.remove(partition);
        }
        let complete = std::mem::replace(&mut self.complete, true);
        Announced { partitions, more: !self.order.is_empty(), complete }
    }
}
