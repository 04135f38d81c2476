//! What was claimed and reached nobody goes back, as if it had not been claimed.
//!
//! A look that fails, is given up, or whose answer is lost may have claimed: the server knows, and it knows under which
//! nonces. They are noted before the claim is sent and struck off when its messages are in hand; what is left is released as
//! soon as the server can be reached, and once more a little later, because a claim that was on its way when the connection
//! broke may take effect after the first release. Beyond that the lease's own end is what remains.

use std::collections::HashSet;
use std::sync::Arc;

use reveille_wake::Cause;
use tracing::{debug, warn};
use uuid::Uuid;

use super::claim::Claim;
use crate::database::DatabaseError;
use crate::database::pauses::GIVE_BACK;
use crate::messages::ground::Ground;
use crate::messages::ids::{GroupId, PartitionId, QueueId};
use crate::messages::message::PartitionLease;
use crate::messages::statements::{ABANDON, UNDO};

/// So many attempts must succeed.
const SUCCESSES: usize = 2;

/// Nonces under which something may be claimed that nobody has in hand.
#[derive(Debug)]
pub(super) struct Afloat {
    ground: Arc<Ground>,
    nonces: Vec<Uuid>,
}

impl Afloat {
    pub(super) fn new(ground: &Arc<Ground>, nonces: Vec<Uuid>) -> Self {
        Self { ground: Arc::clone(ground), nonces }
    }

    /// Everything is in hand but what these claimed.
    pub(super) fn landed_but(mut self, left: Vec<Uuid>) {
        self.nonces = left;
    }
}

impl Drop for Afloat {
    fn drop(&mut self) {
        if !self.nonces.is_empty() {
            let (ground, nonces) = (Arc::clone(&self.ground), std::mem::take(&mut self.nonces));
            self.ground.context.spawn(release_lost(ground, nonces));
        }
    }
}

async fn release_lost(ground: Arc<Ground>, nonces: Vec<Uuid>) {
    let mut successes = 0;
    for pause in GIVE_BACK {
        if ground.context.end().run_until_cancelled(tokio::time::sleep(pause)).await.is_none() && successes > 0 {
            return;
        }
        match abandon(&ground, &nonces).await {
            Ok(released) => {
                debug!(released = released.len(), "released claims that reached nobody");
                successes += 1;
            }
            Err(error) => warn!(%error, "could not release claims that reached nobody, trying again"),
        }
        if successes == SUCCESSES || ground.context.end().is_cancelled() {
            return;
        }
    }
}

/// Gives back what no demand would have.
pub(super) async fn give_back(ground: &Arc<Ground>, claims: Vec<Claim>) {
    let (acked, leased): (Vec<Claim>, Vec<Claim>) = claims.into_iter().partition(|claim| claim.demand.auto_ack);
    let nonces: Vec<Uuid> = leased.iter().map(|claim| claim.lease.0).collect();
    if !nonces.is_empty()
        && let Err(error) = abandon(ground, &nonces).await
    {
        warn!(%error, "could not release what no consumer took, trying again");
        drop(Afloat::new(ground, nonces));
    }
    if !acked.is_empty()
        && let Err(error) = undo(ground, &acked).await
    {
        let messages: usize = acked.iter().flat_map(|claim| &claim.partitions).map(|lease| lease.messages.len()).sum();
        warn!(%error, messages, "consumers that ack by popping went away, and their messages are lost");
    }
}

/// A look failed half-way. Its leases are afloat; what it acked by popping must be taken back one by one.
pub(super) fn put_back_acked(ground: &Arc<Ground>, claims: Vec<Claim>) {
    let acked = claims.into_iter().filter(|claim| claim.demand.auto_ack && !claim.partitions.is_empty());
    let acked: Vec<Claim> = acked.collect();
    if !acked.is_empty() {
        let of = Arc::clone(ground);
        ground.context.spawn(async move { give_back(&of, acked).await });
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

async fn undo(ground: &Ground, claims: &[Claim]) -> Result<(), DatabaseError> {
    let of = || claims.iter().flat_map(|claim| claim.partitions.iter().map(move |lease| (claim.lease, lease)));
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
    /// If a consumer dies, others must look when its lease ends; the heartbeat sees only so far ahead.
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
