//! What one claim round claims for one demand.
//!
//! A [`Claim`] begins empty and open, with the targets that the round is about. The round adds the
//! partitions that it leases for the demand. At the end of the round a claim is one of four:
//! partitions for the consumer, an error for the consumer, a request to resolve its names again, or
//! nothing, and the demand goes on waiting.
//!
//! Next: `slots`, with the two statements that claim; then [`super::rows`].

mod slots;

use std::collections::HashSet;
use std::sync::Arc;

use reveille_wake::{DemandId, WaitingDemand};
use tokio::time::Instant;

use super::request::Demand;
use crate::messages::error::MessagesError;
use crate::messages::ids::{GroupId, LeaseId, PartitionId, QueueId};
use crate::messages::key::Key;
use crate::messages::message::{Batch, PartitionLease};
pub(super) use slots::Slots;

/// Where a group may claim: one partition of a queue, or any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Target {
    pub(super) queue: QueueId,
    pub(super) group: GroupId,
    pub(super) partition: Option<PartitionId>,
}

impl Target {
    /// `None` for the key of something that does not exist yet.
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

    pub(super) fn is_any_partition(self) -> bool {
        self.partition.is_none()
    }

    fn covers(self, lease: &PartitionLease) -> bool {
        self.queue == lease.queue_id
            && self.group == lease.group_id
            && self.partition.is_none_or(|partition| partition == lease.partition_id)
    }
}

/// One demand in one claim round.
#[derive(Debug)]
pub(super) struct Claim {
    pub(super) id: DemandId,
    /// Its position in the round, which names it in the statements.
    pub(super) number: usize,
    pub(super) demand: Arc<Demand>,
    /// Where the round claims for it, the best first.
    pub(super) targets: Vec<Target>,
    /// The nonce of this round's claims alone: releasing the lost claims of one round must not
    /// touch the claims of the next.
    pub(super) lease: LeaseId,
    /// When the round began, before any claim was sent.
    since: Instant,
    pub(super) partitions: Vec<PartitionLease>,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Served if it has partitions, and waiting otherwise.
    Open,
    /// Its names mean something else now: the pop resolves them again.
    NamesChanged,
    /// There are messages, and they cannot be delivered.
    Refused(MessagesError),
}

impl Claim {
    /// A demand at the beginning of the round that is about these keys.
    pub(super) fn new(number: usize, waiting: &WaitingDemand<Key, Demand>, keys: &HashSet<&Key>) -> Self {
        let targets = waiting.keys.iter().filter(|key| keys.contains(key)).filter_map(Target::of).collect();
        Self {
            id: waiting.id,
            number,
            demand: Arc::clone(&waiting.request),
            targets,
            lease: LeaseId::random(),
            since: Instant::now(),
            partitions: Vec::new(),
            state: State::Open,
        }
    }

    /// Whether it has no messages yet, and may get some.
    pub(super) fn waits(&self) -> bool {
        matches!(self.state, State::Open) && self.partitions.is_empty()
    }

    pub(super) fn has_messages(&self) -> bool {
        matches!(self.state, State::Open) && !self.partitions.is_empty()
    }

    pub(super) fn is_refused(&self) -> bool {
        matches!(self.state, State::Refused(_))
    }

    pub(super) fn names_changed(&mut self) {
        self.state = State::NamesChanged;
    }

    pub(super) fn refuse(&mut self, error: MessagesError) {
        self.state = State::Refused(error);
    }

    /// What the consumer gets; `None` when its names must be resolved again.
    pub(super) fn into_batch(self) -> Result<Option<Batch>, MessagesError> {
        match self.state {
            State::Open => {
                let lease = (!self.demand.auto_ack).then_some(self.lease);
                Ok(Some(Batch { lease, group: self.demand.group.clone(), partitions: self.partitions }))
            }
            State::NamesChanged => Ok(None),
            State::Refused(error) => Err(error),
        }
    }

    /// Whether another demand may have it: that demand could have claimed all of it.
    pub(super) fn suits(&self, demand: &Demand) -> bool {
        let messages: usize = self.partitions.iter().map(|partition| partition.messages.len()).sum();
        let covered = |lease| demand.keys.iter().filter_map(Target::of).any(|target| target.covers(lease));
        self.has_messages()
            && !self.has_ended()
            && self.demand.auto_ack == demand.auto_ack
            && self.partitions.len() <= demand.partitions
            && messages <= demand.batch
            && self.partitions.iter().all(covered)
    }

    /// After a process was stopped or a connection stalled, a claim may arrive when its lease has
    /// ended. Other consumers may have settled the messages by then, and this one could not settle
    /// them.
    fn has_ended(&self) -> bool {
        let held = self.since.elapsed();
        !self.demand.auto_ack && self.partitions.iter().any(|partition| partition.lease_time <= held)
    }
}
