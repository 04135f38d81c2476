//! Settling: what consumers say about their leases.
//!
//! Owns the ack lane, on which everything that ends or prolongs a lease travels together, apart
//! from pushes and pops. Promises that a lease which was lost settles nothing and that its holder
//! is told so; that a repeat is harmless; and that whatever becomes claimable rings. Refuses
//! nothing in error: "too late" is an answer.
//!
//! Next: [`super::dead`] for what was given up, [`super::transaction`] for acks together with
//! pushes.

mod acknowledge;
mod memory;
mod settlement;
mod within;
mod work;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio_postgres::Row;

pub use acknowledge::Acknowledgement;
pub use settlement::{Outcome, Settled, Settlement};
pub(super) use within::Settlements;
pub use work::Renewed;
pub(super) use work::pass_whole;

use super::Messages;
use super::context::MessagesContext;
use super::error::MessagesError;
use super::ids::{GroupId, LeaseId, PartitionId, QueueId};
use super::message::Batch;
use super::statements::LEASED;
use crate::batcher::{Batcher, BatcherFigures, BatcherOptions};
use memory::Memory;
use settlement::{End, Place};
use work::{Answer, Ask, Heard, Renewal, Settling, Verdict};

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
        let (mut answers, mut asks) = (Vec::with_capacity(settlements.len()), Vec::with_capacity(settlements.len()));
        for settlement in settlements {
            match settlement.lease {
                Some(lease) => {
                    answers.push(None);
                    asks.push(Ask::Settle(settlement, lease, Heard::Nothing));
                }
                None => answers.push(Some(Ok(auto_acked(&settlement.end)))),
            }
        }
        let mut laned = self.batcher.send(asks).await.into_iter();
        let fill = |answer: Option<_>| {
            answer.unwrap_or_else(|| match laned.next() {
                Some(Ok(Answer::Settled(verdict))) => Ok(verdict),
                Some(Ok(Answer::Unknown(error))) => Err(error.into()),
                Some(Err(error)) => Err(error),
                Some(Ok(Answer::Renewed(_))) | None => Err(MessagesError::Closed),
            })
        };
        answers.into_iter().map(fill).collect()
    }

    /// Give back everything these leases hold, uncharged. Says how many partitions that were.
    pub(super) async fn release(&self, context: &MessagesContext, leases: &[LeaseId]) -> Result<usize, MessagesError> {
        let nonces: Vec<_> = leases.iter().map(|lease| lease.0).collect();
        let held = context.database.acquire().await?.query(&LEASED, &[&nonces]).await?;
        let released = self.settle(held.iter().map(released).collect()).await;
        let done = released.into_iter().collect::<Result<Vec<_>, _>>()?;
        Ok(done.iter().filter(|verdict| matches!(verdict.settled, Settled::Done { .. })).count())
    }

    async fn renew(&self, renewal: Renewal) -> Result<Option<Renewed>, MessagesError> {
        match self.batcher.send(vec![Ask::Renew(renewal)]).await.pop() {
            Some(Ok(Answer::Renewed(renewed))) => Ok(renewed),
            Some(Err(error)) => Err(error),
            Some(Ok(Answer::Settled(_) | Answer::Unknown(_))) | None => Err(MessagesError::Closed),
        }
    }
}

impl Messages {
    /// Settle leases, each in one way: see [`Settlement`]. Answers come in the order asked, after
    /// the commit; what is asked by many callers at once is one statement. A repeat is harmless, so
    /// after an error the same may be said again.
    pub async fn settle(&self, settlements: Vec<Settlement>) -> Vec<Result<Settled, MessagesError>> {
        let verdicts = self.parts.settler.settle(settlements).await;
        verdicts.into_iter().map(|verdict| verdict.map(|verdict| verdict.settled)).collect()
    }

    /// Everything that a pop brought is done. Answers for each partition of the batch, in its
    /// order.
    pub async fn complete(&self, batch: &Batch) -> Vec<Result<Settled, MessagesError>> {
        self.settle(batch.partitions.iter().map(Settlement::complete).collect()).await
    }

    /// Settle messages that are known by their transaction ids: see [`Acknowledgement`]. Answers
    /// come in the order asked.
    pub async fn acknowledge(&self, acknowledgements: Vec<Acknowledgement>) -> Vec<Result<Settled, MessagesError>> {
        acknowledge::acknowledge(&self.parts.context, &self.parts.settler, acknowledgements).await
    }

    /// Keep in memory which messages a batch brought, within a bound, so that
    /// [`acknowledge`](Self::acknowledge) need not look into the log for them. For doors whose
    /// consumers ack by transaction id.
    pub fn remember(&self, batch: &Batch) {
        self.parts.settler.memory.remember(batch);
    }

    /// How many acknowledgements came without a lease since this process began.
    pub fn unfenced_acknowledgements(&self) -> u64 {
        self.parts.settler.unfenced.load(Ordering::Relaxed)
    }

    /// Prolong a lease, in all its partitions, to this long from now; never shorter than it is.
    /// `None` takes each queue's own lease time. The answer is `None` when the lease holds nothing
    /// any more. An ended lease that nobody else has claimed can be renewed.
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

    /// Give a lease back, in all its partitions, as if it had never been taken. Says how many
    /// partitions that were.
    pub async fn release(&self, lease: LeaseId) -> Result<usize, MessagesError> {
        self.parts.settler.release(&self.parts.context, &[lease]).await
    }
}

/// There is nothing to settle about messages that were acked by having been popped.
fn auto_acked(end: &End) -> Verdict {
    let settled = match end {
        End::Whole(_) | End::Through(_) => Settled::Already,
        End::At(..) | End::Released => Settled::Passed,
    };
    Verdict { settled, before: None }
}

fn released(row: &Row) -> Settlement {
    let place = Place {
        partition: PartitionId(row.get("partition")),
        group: GroupId(row.get("grp")),
        queue: QueueId(row.get("queue")),
    };
    Settlement { place, lease: Some(LeaseId(row.get("nonce"))), end: End::Released, strict: false }
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
