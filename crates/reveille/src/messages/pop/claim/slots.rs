//! Slots, and the two statements that fill them.
//!
//! A slot is room for one partition. Within one statement a group has either slots that name their
//! partition or slots that take any: the same row must not be found twice.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use tokio_postgres::Row;
use uuid::Uuid;

use super::{Claim, Target};
use crate::database::{Connection, DatabaseError, Param};
use crate::messages::context::MessagesContext;
use crate::messages::ids::{GroupId, PartitionId};
use crate::messages::pop::low_water::START;
use crate::messages::statements::{CLAIM, CLAIM_PLAIN};

/// More slots than this do not fit into one statement; but every demand has one slot.
const SLOTS_MAX: usize = 4096;
/// With less, a pop of a thousand partitions of which one is full would bring a handful of
/// messages.
const BYTES_EACH_MIN: i64 = 64 * 1024;

/// Room for one partition.
#[derive(Debug, Clone, Copy)]
struct Slot {
    /// The number of the claim it is for.
    claim: i32,
    group: GroupId,
    /// `None` takes any.
    partition: Option<PartitionId>,
    /// Any partition must be due at this time or later.
    due_since: SystemTime,
    /// How many messages the claim wants in all.
    batch: i32,
    nonce: Uuid,
    auto_ack: bool,
}

#[derive(Debug, Default)]
pub(in crate::messages::pop) struct Slots {
    slots: Vec<Slot>,
    named: HashSet<(GroupId, PartitionId)>,
}

impl Slots {
    pub(in crate::messages::pop) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Slots at the target, for as many partitions as the claim wants.
    pub(in crate::messages::pop) fn add(&mut self, claim: &Claim, target: Target, due_since: SystemTime) {
        match target.partition {
            Some(partition) => self.add_named(claim, target.group, partition),
            None => self.add_any(claim, target.group, due_since),
        }
    }

    /// Slots for any partitions of the group that are due since then.
    pub(in crate::messages::pop) fn add_any(&mut self, claim: &Claim, group: GroupId, due_since: SystemTime) {
        let room = SLOTS_MAX.saturating_sub(self.slots.len());
        let slot = Slot { due_since, ..slot(claim, group) };
        self.slots.extend(std::iter::repeat_n(slot, claim.demand.slots().min(room).max(1)));
    }

    /// A slot for this partition, unless another claim has one already.
    pub(in crate::messages::pop) fn add_named(&mut self, claim: &Claim, group: GroupId, partition: PartitionId) {
        if self.named.insert((group, partition)) {
            self.slots.push(Slot { partition: Some(partition), ..slot(claim, group) });
        }
    }

    /// Claims by the general statement. The commit waits for the disk only if the statement acks
    /// messages: a crash after any other claim only delivers messages again.
    pub(in crate::messages::pop) async fn claim(
        &self,
        connection: &Connection,
        context: &MessagesContext,
    ) -> Result<Vec<Row>, DatabaseError> {
        if self.is_empty() {
            return Ok(Vec::new());
        }
        let auto_acks = self.column(|slot| slot.auto_ack);
        let durable = auto_acks.contains(&true);
        let bytes_max = fair_share(context.options.pop_bytes_max, self.widest());
        let params: [Param<'_>; 9] = [
            &self.column(|slot| slot.claim),
            &self.column(|slot| slot.group.0),
            &self.column(Slot::partition),
            &self.column(|slot| slot.due_since),
            &self.column(|slot| slot.batch),
            &self.column(|slot| slot.nonce),
            &auto_acks,
            &bytes_max,
            &durable,
        ];
        let rows = connection.query(&CLAIM, &params).await?;
        let buried: i64 = rows.first().map_or(0, |row| row.get("buried"));
        context.tally.buried.fetch_add(buried.unsigned_abs(), Ordering::Relaxed);
        Ok(rows)
    }

    /// Claims by the statement for plain queues: each claim wants one partition and acks later.
    pub(in crate::messages::pop) async fn claim_plain(
        &self,
        connection: &Connection,
        context: &MessagesContext,
    ) -> Result<Vec<Row>, DatabaseError> {
        if self.is_empty() {
            return Ok(Vec::new());
        }
        let params: [Param<'_>; 7] = [
            &self.column(|slot| slot.claim),
            &self.column(|slot| slot.group.0),
            &self.column(Slot::partition),
            &self.column(|slot| slot.due_since),
            &self.column(|slot| slot.batch),
            &self.column(|slot| slot.nonce),
            &context.options.pop_bytes_max,
        ];
        connection.query(&CLAIM_PLAIN, &params).await
    }

    /// How many slots the claim with the most slots has. The slots of one claim are neighbours.
    fn widest(&self) -> usize {
        self.slots.chunk_by(|one, next| one.claim == next.claim).map(<[Slot]>::len).max().unwrap_or(0)
    }

    fn column<T>(&self, value: impl Fn(&Slot) -> T) -> Vec<T> {
        self.slots.iter().map(value).collect()
    }
}

impl Slot {
    fn partition(&self) -> Option<i32> {
        self.partition.map(|partition| partition.0)
    }
}

/// A slot for any partition of the group, whenever it became due.
fn slot(claim: &Claim, group: GroupId) -> Slot {
    Slot {
        claim: i32::try_from(claim.number).unwrap_or(i32::MAX),
        group,
        partition: None,
        due_since: START,
        batch: i32::try_from(claim.demand.batch).unwrap_or(i32::MAX),
        nonce: claim.lease.0,
        auto_ack: claim.demand.auto_ack,
    }
}

/// How many bytes each of so many partitions of a pop may bring. All pops of a statement get the
/// share of the pop with the most partitions: a pop may get less than it has room for, never more.
fn fair_share(bytes_max: i64, partitions: usize) -> i64 {
    let each = bytes_max / i64::try_from(partitions).unwrap_or(i64::MAX).max(1);
    each.max(BYTES_EACH_MIN.min(bytes_max))
}
