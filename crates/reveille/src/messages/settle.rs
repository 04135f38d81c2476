//! Settles leases: consumers report what they completed and what failed.
//!
//! Owns the batcher for acks, with a connection apart from pushes and pops. It sends what consumers
//! settle and renew outside transactions. Promises that a lost lease settles nothing, and that its
//! holder gets that as the answer; that a repeat is harmless; and that a partition which becomes
//! claimable wakes its group. "Too late" is an answer, not an error.
//!
//! Next: `work`, which settles one batch; [`super::dead`] for dead letters, [`super::transaction`]
//! for acks in one commit with pushes.

mod acknowledge;
mod in_transaction;
mod memory;
mod settlement;
mod work;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio_postgres::Row;

pub use acknowledge::Acknowledgement;
pub(super) use in_transaction::Settlements;
pub use settlement::{Outcome, Settled, Settlement};
pub use work::Renewed;
pub(super) use work::settle_empty;

use super::Messages;
use super::context::MessagesContext;
use super::error::MessagesError;
use super::ids::{GroupId, LeaseId, PartitionId, QueueId};
use super::message::Batch;
use super::statements::LEASED;
use crate::batcher::{Batcher, BatcherFigures, BatcherOptions};
use memory::Memory;
use settlement::{CursorKey, End};
use work::{Answer, Renewal, Request, SettleRequest, Settling, Verdict};

pub(super) const BATCHERS: [&str; 1] = ["ack"];
/// A lease longer than this is a mistake.
const LEASE_MAX: Duration = Duration::from_secs(366 * 24 * 3600);

#[derive(Debug)]
pub(super) struct Settler {
    batcher: Batcher<Settling>,
    memory: Memory,
    unfenced: AtomicU64,
}

impl Settler {
    pub(super) fn new(context: &Arc<MessagesContext>) -> Self {
        let work = Settling { context: Arc::clone(context) };
        let [name] = BATCHERS;
        Self {
            batcher: context.service.batcher(name, BatcherOptions::default(), work),
            memory: Memory::default(),
            unfenced: AtomicU64::new(0),
        }
    }

    pub(super) fn figures(&self) -> BatcherFigures {
        self.batcher.figures()
    }

    async fn settle(&self, settlements: Vec<Settlement>) -> Vec<Result<Verdict, MessagesError>> {
        let (mut answers, mut requests) =
            (Vec::with_capacity(settlements.len()), Vec::with_capacity(settlements.len()));
        for settlement in settlements {
            match settlement.lease {
                Some(lease) => {
                    answers.push(None);
                    requests.push(Request::Settle(SettleRequest::new(settlement, lease)));
                }
                None => answers.push(Some(Ok(auto_acked(&settlement.end)))),
            }
        }
        let mut batched = self.batcher.send(requests).await.into_iter();
        let fill = |answer: Option<_>| {
            answer.unwrap_or_else(|| match batched.next() {
                Some(Ok(Answer::Settled(verdict))) => Ok(verdict),
                Some(Ok(Answer::Unknown(error))) => Err(error.into()),
                Some(Err(error)) => Err(error),
                Some(Ok(Answer::Renewed(_))) | None => Err(MessagesError::Closed),
            })
        };
        answers.into_iter().map(fill).collect()
    }

    /// Gives back everything these leases hold, uncharged. Returns the number of partitions.
    pub(super) async fn release(&self, context: &MessagesContext, leases: &[LeaseId]) -> Result<usize, MessagesError> {
        let nonces: Vec<_> = leases.iter().map(|lease| lease.0).collect();
        let held = context.database.acquire().await?.query(&LEASED, &[&nonces]).await?;
        let released = self.settle(held.iter().map(released).collect()).await;
        let done = released.into_iter().collect::<Result<Vec<_>, _>>()?;
        Ok(done.iter().filter(|verdict| matches!(verdict.settled, Settled::Done { .. })).count())
    }

    async fn renew(&self, renewal: Renewal) -> Result<Option<Renewed>, MessagesError> {
        match self.batcher.send(vec![Request::Renew(renewal)]).await.pop() {
            Some(Ok(Answer::Renewed(renewed))) => Ok(renewed),
            Some(Err(error)) => Err(error),
            Some(Ok(Answer::Settled(_) | Answer::Unknown(_))) | None => Err(MessagesError::Closed),
        }
    }
}

impl Messages {
    /// Settle leases, each in one way: see [`Settlement`]. The answers come in the order of the
    /// settlements, after the commit; the settlements of many callers share a statement. A repeat
    /// is harmless, so after an error the same settlements may be sent again.
    pub async fn settle(&self, settlements: Vec<Settlement>) -> Vec<Result<Settled, MessagesError>> {
        let verdicts = self.parts.settler.settle(settlements).await;
        verdicts.into_iter().map(|verdict| verdict.map(|verdict| verdict.settled)).collect()
    }

    /// Complete all messages of a batch. One answer for each partition of the batch, in its order.
    pub async fn complete(&self, batch: &Batch) -> Vec<Result<Settled, MessagesError>> {
        self.settle(batch.partitions.iter().map(Settlement::complete).collect()).await
    }

    /// Settle messages by their transaction ids: see [`Acknowledgement`]. The answers come in the
    /// order of the acknowledgements.
    pub async fn acknowledge(&self, acknowledgements: Vec<Acknowledgement>) -> Vec<Result<Settled, MessagesError>> {
        acknowledge::acknowledge(&self.parts.context, &self.parts.settler, acknowledgements).await
    }

    /// Keep the positions of a batch's messages in memory, within a bound, so that
    /// [`acknowledge`](Self::acknowledge) need not search the log for them. For servers whose
    /// clients ack by transaction id.
    pub fn remember(&self, batch: &Batch) {
        self.parts.settler.memory.remember(batch);
    }

    /// How many acknowledgements came without a lease since this process began.
    pub fn unfenced_acknowledgements(&self) -> u64 {
        self.parts.settler.unfenced.load(Ordering::Relaxed)
    }

    /// Extend a lease, in all its partitions, to this long from now; never shortens it. Without a
    /// time, the lease time of each queue. The answer is `None` if the lease holds nothing any
    /// more. A lease that has ended can be renewed unless another consumer has claimed since.
    pub async fn renew(&self, lease: LeaseId, time: Option<Duration>) -> Result<Option<Renewed>, MessagesError> {
        self.parts.settler.renew(Renewal { lease, seconds: checked(time)?, strict: false }).await
    }

    /// As [`renew`](Self::renew), but an ended lease is refused like a lost one.
    pub async fn renew_strictly(
        &self,
        lease: LeaseId,
        time: Option<Duration>,
    ) -> Result<Option<Renewed>, MessagesError> {
        self.parts.settler.renew(Renewal { lease, seconds: checked(time)?, strict: true }).await
    }

    /// Give a lease back, in all its partitions, as if it had never been claimed. Returns the
    /// number of partitions.
    pub async fn release(&self, lease: LeaseId) -> Result<usize, MessagesError> {
        self.parts.settler.release(&self.parts.context, &[lease]).await
    }
}

/// Messages that were acked by popping are settled already.
fn auto_acked(end: &End) -> Verdict {
    let settled = match end {
        End::Whole(_) | End::Through(_) => Settled::Already,
        End::At(..) | End::Released => Settled::Passed,
    };
    Verdict { settled, before: None }
}

fn released(row: &Row) -> Settlement {
    let cursor = CursorKey {
        partition: PartitionId(row.get("partition")),
        group: GroupId(row.get("grp")),
        queue: QueueId(row.get("queue")),
    };
    Settlement { cursor, lease: Some(LeaseId(row.get("nonce"))), end: End::Released, strict: false }
}

fn checked(time: Option<Duration>) -> Result<Option<f64>, MessagesError> {
    let refused = |time: Duration| MessagesError::OutOfRange {
        what: "a lease",
        allowed: "longer than nothing and at most a year",
        given: format!("{time:?}"),
    };
    match time {
        Some(time) if time.is_zero() || time > LEASE_MAX => Err(refused(time)),
        time => Ok(time.map(|time| time.as_secs_f64())),
    }
}
