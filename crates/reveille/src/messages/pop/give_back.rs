//! Gives back claims that no consumer received, as if they had not been made.
//!
//! Leases are released by their nonces. Messages that were acked by popping have no lease: their
//! cursors are moved back.
//!
//! Next: [`crate::service::lost_claims`], for claims whose answer was lost.

use std::collections::HashSet;
use std::sync::Arc;

use reveille_wake::Cause;
use tracing::warn;
use uuid::Uuid;

use super::claim::Claim;
use crate::database::DatabaseError;
use crate::messages::context::MessagesContext;
use crate::messages::ids::{GroupId, PartitionId, QueueId};
use crate::messages::message::PartitionLease;
use crate::messages::statements::{ABANDON, UNDO};
use crate::service::lost_claims::{GiveBack, Given, SentClaim};

/// Nonces of claims that were sent. Dropped before [`in_hand_but`](Self::in_hand_but), what was
/// claimed under them is given back.
pub(super) struct LostClaims(SentClaim<Release>);

/// Releases leases by their nonces.
struct Release(Arc<MessagesContext>);

impl GiveBack for Release {
    type Nonce = Uuid;

    /// Never [`Given::All`]: a round sends several claims, and each takes effect at its own time.
    async fn give_back(&self, nonces: &[Uuid]) -> Result<Given, DatabaseError> {
        let released = abandon(&self.0, nonces).await?;
        Ok(if released.is_empty() { Given::Nothing } else { Given::Some })
    }
}

impl LostClaims {
    pub(super) fn new(context: &Arc<MessagesContext>, nonces: Vec<Uuid>) -> Self {
        Self(SentClaim::new(&context.service, Release(Arc::clone(context)), nonces))
    }

    /// All claims were received, except those under these nonces.
    pub(super) fn in_hand_but(self, left: Vec<Uuid>) {
        self.0.in_hand_but(left);
    }
}

/// Gives back claims for which there is no demand any more.
pub(super) async fn give_back(context: &Arc<MessagesContext>, claims: Vec<Claim>) {
    let (acked, leased): (Vec<Claim>, Vec<Claim>) = claims.into_iter().partition(|claim| claim.demand.auto_ack);
    let nonces: Vec<Uuid> = leased.iter().map(|claim| claim.lease.0).collect();
    if !nonces.is_empty()
        && let Err(error) = abandon(context, &nonces).await
    {
        warn!(%error, "could not release leases that no consumer received, trying again");
        drop(LostClaims::new(context, nonces));
    }
    if !acked.is_empty()
        && let Err(error) = undo(context, &acked).await
    {
        let messages: usize = acked.iter().flat_map(|claim| &claim.partitions).map(|lease| lease.messages.len()).sum();
        warn!(%error, messages, "lost messages: consumers that ack by popping went away, and putting back failed");
    }
}

/// A claim round failed half-way. Its leases are given back by their nonces; messages that it acked
/// by popping are put back here.
pub(super) fn put_back_acked(context: &Arc<MessagesContext>, claims: Vec<Claim>) {
    let acked = claims.into_iter().filter(|claim| claim.demand.auto_ack && !claim.partitions.is_empty());
    let acked: Vec<Claim> = acked.collect();
    if !acked.is_empty() {
        let of = Arc::clone(context);
        context.service.spawn(async move { give_back(&of, acked).await });
    }
}

/// Releases what is claimed under the nonces, and returns the partitions and groups.
pub(super) async fn abandon(
    context: &MessagesContext,
    nonces: &[Uuid],
) -> Result<Vec<(PartitionId, GroupId)>, DatabaseError> {
    let rows = context.database.acquire().await?.query(&ABANDON, &[&nonces]).await?;
    let released = rows.iter().map(|row| {
        let (partition, group, queue) = (PartitionId(row.get(0)), GroupId(row.get(1)), QueueId(row.get(2)));
        context.notifier.freed_by(queue, group, Some(partition), Cause::Released);
        (partition, group)
    });
    Ok(released.collect())
}

async fn undo(context: &MessagesContext, claims: &[Claim]) -> Result<(), DatabaseError> {
    let of = || claims.iter().flat_map(|claim| claim.partitions.iter().map(move |lease| (claim.lease, lease)));
    let partitions: Vec<i32> = of().map(|(_, lease)| lease.partition_id.0).collect();
    let groups: Vec<i32> = of().map(|(_, lease)| lease.group_id.0).collect();
    let nonces: Vec<Uuid> = of().map(|(nonce, _)| nonce.0).collect();
    let starts: Vec<i64> = of().map(|(_, lease)| lease.start).collect();
    let throughs: Vec<i64> = of().map(|(_, lease)| lease.through).collect();
    let connection = context.database.acquire().await?;
    connection.execute(&UNDO, &[&partitions, &groups, &nonces, &starts, &throughs]).await?;
    for (_, lease) in of() {
        context.notifier.freed_by(lease.queue_id, lease.group_id, Some(lease.partition_id), Cause::Released);
    }
    Ok(())
}

impl MessagesContext {
    /// If a consumer dies, others must claim when its lease ends. The heartbeat reads the end of a
    /// long lease in time; the end of a short one is announced.
    pub(super) fn announce_lease_ends<'l>(&self, leases: impl Iterator<Item = &'l PartitionLease>) {
        let far = self.database.heartbeat() * 2;
        let mut announced: HashSet<GroupId> = HashSet::new();
        for lease in leases {
            if lease.lease_time < far && announced.insert(lease.group_id) {
                self.notifier.leased(lease.queue_id, lease.group_id, lease.lease_time);
            }
        }
    }
}
