//! Slots for the claim statement, and the statement itself.
//!
//! A slot is room for one partition. Within one statement a group has either slots that name their partition or slots that
//! take any: the same row must not be found twice.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use tokio_postgres::Row;
use uuid::Uuid;

use super::marks::START;
use super::request::{Spot, Wish};
use crate::database::{Connection, DatabaseError, Param};
use crate::messages::ground::Ground;
use crate::messages::ids::{GroupId, PartitionId};
use crate::messages::statements::{CLAIM, CLAIM_PLAIN};

/// More slots than this do not fit into one look; every demand has room for one partition at least.
const SLOTS_MAX: usize = 4096;

/// With less, a pop of a thousand partitions of which one is full would bring a handful of messages.
const BYTES_EACH_MIN: i64 = 64 * 1024;

/// Room for one partition, for the wish of this number.
#[derive(Debug, Clone, Copy)]
struct Slot {
    number: usize,
    group: GroupId,
    /// `None` takes any.
    partition: Option<PartitionId>,
    since: SystemTime,
}

#[derive(Debug, Default)]
pub(super) struct Slots {
    groups: Vec<i32>,
    consumers: Vec<i32>,
    batches: Vec<i32>,
    nonces: Vec<Uuid>,
    autos: Vec<bool>,
    named: Vec<Option<i32>>,
    /// From where on what is due is read.
    since: Vec<SystemTime>,
    taken: HashSet<(GroupId, PartitionId)>,
}

impl Slots {
    pub(super) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Room for any partitions of a group that are due since then.
    pub(super) fn any(&mut self, number: usize, wish: &Wish, group: GroupId, since: SystemTime) {
        for _ in 0..wish.ask.slots().min(SLOTS_MAX.saturating_sub(self.groups.len())).max(1) {
            self.add(wish, Slot { number, group, partition: None, since });
        }
    }

    /// Room for this one, unless somebody has it already.
    pub(super) fn named(&mut self, number: usize, wish: &Wish, group: GroupId, partition: PartitionId) {
        if self.taken.insert((group, partition)) {
            self.add(wish, Slot { number, group, partition: Some(partition), since: START });
        }
    }

    /// What the wish is open for.
    pub(super) fn spot(&mut self, number: usize, wish: &Wish, spot: Spot, since: SystemTime) {
        match spot.partition {
            None => self.any(number, wish, spot.group, since),
            Some(partition) => self.named(number, wish, spot.group, partition),
        }
    }

    fn add(&mut self, wish: &Wish, slot: Slot) {
        self.groups.push(slot.group.0);
        self.consumers.push(i32::try_from(slot.number).unwrap_or(i32::MAX));
        self.batches.push(i32::try_from(wish.ask.batch).unwrap_or(i32::MAX));
        self.nonces.push(wish.lease.0);
        self.autos.push(wish.ask.auto);
        self.named.push(slot.partition.map(|partition| partition.0));
        self.since.push(slot.since);
    }

    /// Claims, durably if something is acked by it. A crash after any other claim only brings the messages again.
    pub(super) async fn claim(&self, connection: &Connection, ground: &Ground) -> Result<Vec<Row>, DatabaseError> {
        if self.is_empty() {
            return Ok(Vec::new());
        }
        let durable = self.autos.contains(&true);
        let bytes_max = fair_share(ground.options.pop_bytes_max, self.widest());
        let params: [Param<'_>; 9] = [
            &self.groups,
            &self.consumers,
            &self.batches,
            &self.nonces,
            &self.autos,
            &self.named,
            &bytes_max,
            &durable,
            &self.since,
        ];
        let rows = connection.query(&CLAIM, &params).await?;
        let buried: i64 = rows.first().map_or(0, |row| row.get("buried"));
        ground.tally.buried.fetch_add(buried.unsigned_abs(), Ordering::Relaxed);
        Ok(rows)
    }

    /// How many slots the consumer has that has most; those of one stand together.
    fn widest(&self) -> usize {
        self.consumers.chunk_by(|one, next| one == next).map(<[i32]>::len).max().unwrap_or(0)
    }

    /// The same for slots of plain queues that want one partition each and do not ack by it.
    pub(super) async fn claim_plain(
        &self,
        connection: &Connection,
        ground: &Ground,
    ) -> Result<Vec<Row>, DatabaseError> {
        if self.is_empty() {
            return Ok(Vec::new());
        }
        let bytes_max = ground.options.pop_bytes_max;
        let params: [Param<'_>; 7] =
            [&self.groups, &self.consumers, &self.batches, &self.nonces, &self.named, &bytes_max, &self.since];
        connection.query(&CLAIM_PLAIN, &params).await
    }
}

/// What each of so many partitions may bring of a pop's bytes. Everybody in a statement has the share of the widest pop: a
/// neighbour may get less than it had room for, never more.
fn fair_share(bytes_max: i64, partitions: usize) -> i64 {
    let each = bytes_max / i64::try_from(partitions).unwrap_or(i64::MAX).max(1);
    each.max(BYTES_EACH_MIN.min(bytes_max))
}
