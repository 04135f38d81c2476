//! Which messages the leases of this process brought, so that acks by transaction id need not look
//! into the log.
//!
//! Owns a bounded number of messages; the oldest leases are forgotten first. Nothing depends on it
//! but speed: what is not remembered is looked up.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use super::settlement::Place;
use crate::messages::ids::{LeaseId, PartitionUid};
use crate::messages::message::{Batch, PartitionLease};
use crate::messages::name::GroupName;

/// A transaction id and its entry take about 100 bytes.
const MESSAGES_MAX: usize = 200_000;

#[derive(Debug, Default)]
pub(super) struct Memory {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    leases: HashMap<(LeaseId, PartitionUid), Arc<Remembered>>,
    order: VecDeque<(LeaseId, PartitionUid)>,
    messages: usize,
}

/// One partition of a lease.
#[derive(Debug)]
pub(super) struct Remembered {
    pub(super) place: Place,
    pub(super) group: GroupName,
    /// The last sequence of the lease.
    pub(super) through: i64,
    seqs: HashMap<String, i64>,
}

impl Memory {
    pub(super) fn remember(&self, batch: &Batch) {
        let Some(lease) = batch.lease else { return };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for partition in &batch.partitions {
            known.learn(lease, partition.partition_uid, Remembered::new(&batch.group, partition));
        }
    }

    pub(super) fn find(&self, lease: LeaseId, partition: PartitionUid) -> Option<Arc<Remembered>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).leases.get(&(lease, partition)).cloned()
    }
}

impl Known {
    fn learn(&mut self, lease: LeaseId, partition: PartitionUid, entry: Remembered) {
        let key = (lease, partition);
        self.messages += entry.weight();
        match self.leases.insert(key, Arc::new(entry)) {
            Some(before) => self.messages -= before.weight(),
            None => self.order.push_back(key),
        }
        while self.messages > MESSAGES_MAX {
            let Some(oldest) = self.order.pop_front() else { return };
            self.messages -= self.leases.remove(&oldest).map_or(0, |entry| entry.weight());
        }
    }
}

impl Remembered {
    fn new(group: &GroupName, lease: &PartitionLease) -> Self {
        let place = Place { partition: lease.partition_id, group: lease.group_id, queue: lease.queue_id };
        // Of two messages with the same id in one lease the first is meant, as in the log.
        let mut seqs = HashMap::with_capacity(lease.messages.len());
        for message in &lease.messages {
            seqs.entry(message.transaction_id.clone()).or_insert(message.seq);
        }
        Self { place, group: group.clone(), through: lease.through, seqs }
    }

    pub(super) fn seq(&self, transaction_id: &str) -> Option<i64> {
        self.seqs.get(transaction_id).copied()
    }

    fn weight(&self) -> usize {
        self.seqs.len().max(1)
    }
}
