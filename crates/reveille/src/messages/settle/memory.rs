//! Remembers the positions of leased messages, so that acks by transaction id need not search the
//! log.
//!
//! Owns the transaction ids of a bounded number of messages; the oldest leases are forgotten first.
//! Only speed depends on it: messages that are not remembered are looked up.
//!
//! Next: [`super::acknowledge`].

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use super::settlement::CursorKey;
use crate::messages::ids::{LeaseId, PartitionUid};
use crate::messages::message::{Batch, PartitionLease};
use crate::messages::name::GroupName;

/// A transaction id and its entry take about 100 bytes.
const MESSAGES_MAX: usize = 200_000;

#[derive(Debug, Default)]
pub(super) struct Memory {
    leases: Mutex<Leases>,
}

#[derive(Debug, Default)]
struct Leases {
    by_id: HashMap<(LeaseId, PartitionUid), Arc<Remembered>>,
    order: VecDeque<(LeaseId, PartitionUid)>,
    messages: usize,
}

/// One partition of a lease.
#[derive(Debug)]
pub(super) struct Remembered {
    pub(super) cursor: CursorKey,
    pub(super) group: GroupName,
    /// The last sequence of the lease.
    pub(super) through: i64,
    seqs: HashMap<String, i64>,
}

impl Memory {
    pub(super) fn remember(&self, batch: &Batch) {
        let Some(lease) = batch.lease else { return };
        let mut leases = self.leases.lock().unwrap_or_else(PoisonError::into_inner);
        for partition in &batch.partitions {
            leases.add(lease, partition.partition_uid, Remembered::new(&batch.group, partition));
        }
    }

    pub(super) fn find(&self, lease: LeaseId, partition: PartitionUid) -> Option<Arc<Remembered>> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner).by_id.get(&(lease, partition)).cloned()
    }
}

impl Leases {
    fn add(&mut self, lease: LeaseId, partition: PartitionUid, entry: Remembered) {
        let key = (lease, partition);
        self.messages += entry.weight();
        match self.by_id.insert(key, Arc::new(entry)) {
            Some(before) => self.messages -= before.weight(),
            None => self.order.push_back(key),
        }
        while self.messages > MESSAGES_MAX {
            let Some(oldest) = self.order.pop_front() else { return };
            self.messages -= self.by_id.remove(&oldest).map_or(0, |entry| entry.weight());
        }
    }
}

impl Remembered {
    fn new(group: &GroupName, lease: &PartitionLease) -> Self {
        let cursor = CursorKey { partition: lease.partition_id, group: lease.group_id, queue: lease.queue_id };
        // If two messages of a lease have the same id, an ack means the first, as in the log.
        let mut seqs = HashMap::with_capacity(lease.messages.len());
        for message in &lease.messages {
            seqs.entry(message.transaction_id.clone()).or_insert(message.seq);
        }
        Self { cursor, group: group.clone(), through: lease.through, seqs }
    }

    pub(super) fn seq(&self, transaction_id: &str) -> Option<i64> {
        self.seqs.get(transaction_id).copied()
    }

    fn weight(&self) -> usize {
        self.seqs.len().max(1)
    }
}
