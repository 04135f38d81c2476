//! Gives back claims that no consumer received, as if they had not been made.
//!
//! Leases are released by their nonces. Messages that were acked by popping have no lease: they are
//! put back, that is, their cursors are moved back.
//!
//! Next: [`crate::service::lost_claims`], for claims whose answer was lost.

use std::sync::Arc;

use reveille_wake::Cause;
use tokio_postgres::Row;
use tracing::warn;
use uuid::Uuid;

use super::claim::Claim;
use crate::database::DatabaseError;
use crate::database::outage::warn_unless_away;
use crate::messages::context::MessagesContext;
use crate::messages::ids::{GroupId, LeaseId, PartitionId, QueueId};
use crate::messages::statements::{ABANDON, UNDO};
use crate::service::lost_claims::{GiveBack, Given, SentClaim};

/// Nonces of claims that were sent. Dropped before [`received_except`](Self::received_except), what
/// was claimed under them is given back.
pub(super) struct SentClaims(SentClaim<Release>);

/// Releases leases by their nonces.
struct Release(Arc<MessagesContext>);

impl GiveBack for Release {
    type Nonce = Uuid;

    /// Never [`Given::All`]: a round sends several claims, and each takes effect at its own time.
    async fn give_back(&self, nonces: &[Uuid]) -> Result<Given, DatabaseError> {
        let released = release_leases(&self.0, nonces).await?;
        Ok(if released == 0 { Given::Nothing } else { Given::Some })
    }
}

impl SentClaims {
    pub(super) fn new(context: &Arc<MessagesContext>, nonces: Vec<Uuid>) -> Self {
        Self(SentClaim::new(&context.service, Release(Arc::clone(context)), nonces))
    }

    /// All claims were received, except those under these nonces.
    pub(super) fn received_except(self, missing: Vec<Uuid>) {
        self.0.received_except(missing);
    }
}

/// Messages of one partition that a claim acked by popping.
#[derive(Debug, Clone, Copy)]
pub(super) struct Acked {
    /// The nonce of the claim.
    pub(super) claim: LeaseId,
    pub(super) group: GroupId,
    pub(super) partition: PartitionId,
    /// The sequence before the first message, and that of the last.
    pub(super) start: i64,
    pub(super) through: i64,
}

impl Acked {
    fn all_of(claim: &Claim) -> impl Iterator<Item = Self> {
        claim.partitions.iter().map(|lease| Self {
            claim: claim.lease,
            group: lease.group_id,
            partition: lease.partition_id,
            start: lease.start,
            through: lease.through,
        })
    }
}

/// Gives back claims for which there is no demand any more.
pub(super) async fn give_back(context: &Arc<MessagesContext>, claims: Vec<Claim>) {
    let (acked, leased): (Vec<Claim>, Vec<Claim>) = claims.into_iter().partition(|claim| claim.demand.auto_ack);
    let nonces: Vec<Uuid> = leased.iter().map(|claim| claim.lease.0).collect();
    if !nonces.is_empty()
        && let Err(error) = release_leases(context, &nonces).await
    {
        warn_unless_away!(&error, %error, "could not release leases that no consumer received, trying again");
        drop(SentClaims::new(context, nonces));
    }
    put_back(context, acked.iter().flat_map(Acked::all_of).collect()).await;
}

/// Puts back what a claim round acked for consumers that will not get it, in a task of its own.
pub(super) fn start_putting_back(context: &Arc<MessagesContext>, acked: Vec<Acked>) {
    if !acked.is_empty() {
        let shared = Arc::clone(context);
        context.service.spawn(async move { put_back(&shared, acked).await });
    }
}

async fn put_back(context: &MessagesContext, acked: Vec<Acked>) {
    if !acked.is_empty()
        && let Err(error) = move_back(context, &acked).await
    {
        let messages: i64 = acked.iter().map(|acked| acked.through - acked.start).sum();
        warn!(%error, messages, "lost messages: no consumer received what its pop acked, and putting back failed");
    }
}

/// Releases what is claimed under the nonces. Returns how many leases that were.
async fn release_leases(context: &MessagesContext, nonces: &[Uuid]) -> Result<usize, DatabaseError> {
    let released = context.database.acquire().await?.query(&ABANDON, &[&nonces]).await?;
    announce(context, &released);
    Ok(released.len())
}

async fn move_back(context: &MessagesContext, acked: &[Acked]) -> Result<(), DatabaseError> {
    let partitions: Vec<i32> = acked.iter().map(|acked| acked.partition.0).collect();
    let groups: Vec<i32> = acked.iter().map(|acked| acked.group.0).collect();
    let nonces: Vec<Uuid> = acked.iter().map(|acked| acked.claim.0).collect();
    let starts: Vec<i64> = acked.iter().map(|acked| acked.start).collect();
    let throughs: Vec<i64> = acked.iter().map(|acked| acked.through).collect();
    let connection = context.database.acquire().await?;
    let moved = connection.query(&UNDO, &[&partitions, &groups, &nonces, &starts, &throughs]).await?;
    announce(context, &moved);
    Ok(())
}

/// Wakes the groups of these cursors, which may claim again.
fn announce(context: &MessagesContext, cursors: &[Row]) {
    for row in cursors {
        let (partition, group, queue) = (PartitionId(row.get(0)), GroupId(row.get(1)), QueueId(row.get(2)));
        context.notifier.freed_by(queue, group, Some(partition), Cause::Released);
    }
}
