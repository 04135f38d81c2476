//! A demand, from its question to what it gets.

use std::sync::Arc;

use reveille_wake::DemandId;
use tokio::time::Instant;

use super::Pop;
use crate::messages::error::MessagesError;
use crate::messages::ids::{GroupId, LeaseId, PartitionId, QueueId};
use crate::messages::key::Key;
use crate::messages::message::{Batch, PartitionLease};
use crate::messages::name::GroupName;

/// What a demand asks for, beyond where.
#[derive(Debug)]
pub(super) struct Ask {
    pub(super) keys: Arc<[Key]>,
    pub(super) group: GroupName,
    pub(super) batch: usize,
    pub(super) partitions: usize,
    pub(super) auto: bool,
}

impl Ask {
    pub(super) fn of(pop: &Pop, keys: Arc<[Key]>) -> Self {
        Self {
            keys,
            group: pop.group.clone(),
            batch: pop.batch as usize,
            partitions: pop.partitions as usize,
            auto: pop.auto_ack,
        }
    }

    /// For how many partitions there is room; none beyond one for each message.
    pub(super) fn slots(&self) -> usize {
        self.partitions.min(self.batch)
    }
}

/// What a demand gets.
#[derive(Debug)]
pub(super) enum Found {
    Batch(Haul),
    /// The names it asked for mean something else now.
    Again,
    /// It was there, and cannot be given.
    Refused(MessagesError),
}

/// What was claimed for one demand.
#[derive(Debug)]
pub(super) struct Haul {
    pub(super) lease: LeaseId,
    /// Before the claim was asked for.
    pub(super) since: Instant,
    pub(super) auto: bool,
    pub(super) group: GroupName,
    pub(super) partitions: Vec<PartitionLease>,
}

impl Haul {
    pub(super) fn into_batch(self) -> Batch {
        Batch { lease: (!self.auto).then_some(self.lease), group: self.group, partitions: self.partitions }
    }

    /// Whether another demand may have it: it could have claimed all of it itself.
    pub(super) fn suits(&self, ask: &Ask) -> bool {
        let messages: usize = self.partitions.iter().map(|partition| partition.messages.len()).sum();
        !self.is_over()
            && self.auto == ask.auto
            && self.partitions.len() <= ask.partitions
            && messages <= ask.batch
            && self.partitions.iter().all(|partition| ask.keys.iter().any(|key| covers(key, partition)))
    }
}

impl Haul {
    /// A process that was stopped, or a line that stood still, may bring a claim after its end: others may have settled it
    /// by now, and whoever got it could do nothing with it.
    fn is_over(&self) -> bool {
        let held = self.since.elapsed();
        !self.auto && self.partitions.iter().any(|partition| partition.lease_time <= held)
    }
}

fn covers(key: &Key, lease: &PartitionLease) -> bool {
    match key {
        Key::Claim { queue, group, partition } => {
            *queue == lease.queue_id
                && *group == lease.group_id
                && partition.is_none_or(|partition| partition == lease.partition_id)
        }
        Key::Queue(_) | Key::Partition(..) | Key::Space(_) => false,
    }
}

/// Where something may be claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Spot {
    pub(super) queue: QueueId,
    pub(super) group: GroupId,
    pub(super) partition: Option<PartitionId>,
}

impl Spot {
    pub(super) fn of(key: &Key) -> Option<Self> {
        match key {
            Key::Claim { queue, group, partition } => {
                Some(Self { queue: *queue, group: *group, partition: *partition })
            }
            Key::Queue(_) | Key::Partition(..) | Key::Space(_) => None,
        }
    }

    pub(super) fn key(self) -> Key {
        Key::Claim { queue: self.queue, group: self.group, partition: self.partition }
    }
}

/// A demand during a look.
#[derive(Debug)]
pub(super) struct Wish {
    pub(super) id: DemandId,
    pub(super) ask: Arc<Ask>,
    /// Where the look is to look for it, the best first.
    pub(super) spots: Vec<Spot>,
    /// A name for this look's claims alone: releasing what one look lost must not touch what the next one brings.
    pub(super) lease: LeaseId,
    /// When the look began.
    pub(super) since: Instant,
    pub(super) claims: Vec<PartitionLease>,
    /// Its names must be resolved again.
    pub(super) again: bool,
    pub(super) refused: Option<MessagesError>,
}

impl Wish {
    pub(super) fn is_open(&self) -> bool {
        self.claims.is_empty() && !self.again && self.refused.is_none()
    }

    pub(super) fn found(mut self) -> Option<(DemandId, Found)> {
        let (id, again) = (self.id, self.again);
        let found = match self.refused.take() {
            Some(error) => Some(Found::Refused(error)),
            None => self.into_haul().map(Found::Batch).or(again.then_some(Found::Again)),
        };
        Some((id, found?))
    }

    /// What it has in hand, if anything.
    pub(super) fn into_haul(self) -> Option<Haul> {
        let (auto, group) = (self.ask.auto, self.ask.group.clone());
        let (lease, since) = (self.lease, self.since);
        (!self.claims.is_empty()).then_some(Haul { lease, since, auto, group, partitions: self.claims })
    }
}
