//! What was claimed and reached nobody goes back, as if it had not been claimed.
//!
//! Leases are released by their nonces, and what was acked by popping is taken back by its place.
//! Claims whose answer was lost are [`crate::service::lost_claims`].

use std::collections::HashSet;
use std::sync::Arc;

use reveille_wake::Cause;
use tracing::warn;
use uuid::Uuid;

use super::wish::{Haul, Wish};
use crate::database::DatabaseError;
use crate::messages::ground::Ground;
use crate::messages::ids::{GroupId, PartitionId, QueueId};
use crate::messages::message::PartitionLease;
use crate::messages::statements::{ABANDON, UNDO};
use crate::service::lost_claims::{GiveBack, Given, SentClaim};

/// Nonces under which something may be claimed that is in nobody's hands.
pub(super) struct Afloat(SentClaim<Release>);

/// Releases leases by their nonces.
struct Release(Arc<Ground>);

impl GiveBack for Release {
    type Nonce = Uuid;

    /// A round sends several claims: each may take effect at its own time.
    async fn give_back(&self, nonces: &[Uuid]) -> Result<Given, DatabaseError> {
        let released = abandon(&self.0, nonces).await?;
        Ok(if released.is_empty() { Given::Nothing } else { Given::Some })
    }
}

impl Afloat {
    pub(super) fn new(ground: &Arc<Ground>, nonces: Vec<Uuid>) -> Self {
        Self(SentClaim::new(&ground.context, Release(Arc::clone(ground)), nonces))
    }

    /// Everything is in hand but what these claimed.
    pub(super) fn landed_but(self, left: Vec<Uuid>) {
        self.0.in_hand_but(left);
    }
}

/// Gives back what no demand would have.
pub(super) async fn give_back(ground: &Arc<Ground>, hauls: Vec<Haul>) {
    let (acked, leased): (Vec<Haul>, Vec<Haul>) = hauls.into_iter().partition(|haul| haul.auto);
    let nonces: Vec<Uuid> = leased.iter().map(|haul| haul.lease.0).collect();
    if !nonces.is_empty()
        && let Err(error) = abandon(ground, &nonces).await
    {
        warn!(%error, "could not release what no consumer took, trying again");
        drop(Afloat::new(ground, nonces));
    }
    if !acked.is_empty()
        && let Err(error) = undo(ground, &acked).await
    {
        let messages: usize = acked.iter().flat_map(|haul| &haul.partitions).map(|lease| lease.messages.len()).sum();
        warn!(%error, messages, "consumers that ack by popping went away, and their messages are lost");
    }
}

/// A look failed half-way. Its leases are afloat; what it acked by popping must be taken back one
/// by one.
pub(super) fn put_back_acked(ground: &Arc<Ground>, wishes: Vec<Wish>) {
    let acked = wishes.into_iter().filter(|wish| wish.ask.auto && !wish.claims.is_empty());
    let hauls: Vec<Haul> = acked.filter_map(Wish::into_haul).collect();
    if !hauls.is_empty() {
        let of = Arc::clone(ground);
        ground.context.spawn(async move { give_back(&of, hauls).await });
    }
}

/// Releases what is claimed under the nonces, and says what that was.
pub(super) async fn abandon(ground: &Ground, nonces: &[Uuid]) -> Result<Vec<(PartitionId, GroupId)>, DatabaseError> {
    let rows = ground.database.acquire().await?.query(&ABANDON, &[&nonces]).await?;
    let released = rows.iter().map(|row| {
        let (partition, group, queue) = (PartitionId(row.get(0)), GroupId(row.get(1)), QueueId(row.get(2)));
        ground.bell.freed_by(queue, group, Some(partition), Cause::Released);
        (partition, group)
    });
    Ok(released.collect())
}

async fn undo(ground: &Ground, hauls: &[Haul]) -> Result<(), DatabaseError> {
    let of = || hauls.iter().flat_map(|haul| haul.partitions.iter().map(move |lease| (haul.lease, lease)));
    let partitions: Vec<i32> = of().map(|(_, lease)| lease.partition_id.0).collect();
    let groups: Vec<i32> = of().map(|(_, lease)| lease.group_id.0).collect();
    let nonces: Vec<Uuid> = of().map(|(nonce, _)| nonce.0).collect();
    let starts: Vec<i64> = of().map(|(_, lease)| lease.start).collect();
    let throughs: Vec<i64> = of().map(|(_, lease)| lease.through).collect();
    let connection = ground.database.acquire().await?;
    connection.execute(&UNDO, &[&partitions, &groups, &nonces, &starts, &throughs]).await?;
    for (_, lease) in of() {
        ground.bell.freed_by(lease.queue_id, lease.group_id, Some(lease.partition_id), Cause::Released);
    }
    Ok(())
}

impl Ground {
    /// If a consumer dies, others must look when its lease ends; the heartbeat sees only so far
    /// ahead.
    pub(super) fn announce_ends<'l>(&self, leases: impl Iterator<Item = &'l PartitionLease>) {
        let far = self.database.heartbeat() * 2;
        let mut told: HashSet<GroupId> = HashSet::new();
        for lease in leases {
            if lease.lease_time < far && told.insert(lease.group_id) {
                self.bell.leased(lease.queue_id, lease.group_id, lease.lease_time);
            }
        }
    }
}
