//! Acks by transaction id: one call may have many messages, leases and partitions.
//!
//! Finds the messages, in memory or in the log; bundles the acknowledgements by lease; settles each
//! bundle; and answers every acknowledgement by the verdict on its bundle.
//!
//! Next: `bundle`, which says what a bundle settles and what each message of it is answered;
//! [`super::work`], which settles.

mod bundle;

use std::sync::atomic::Ordering;

use tokio_postgres::Row;

use super::Settler;
use super::settlement::{CursorKey, Outcome, Settled};
use crate::messages::context::MessagesContext;
use crate::messages::error::MessagesError;
use crate::messages::ids::{GroupId, LeaseId, PartitionId, PartitionUid, QueueId};
use crate::messages::name::GroupName;
use crate::messages::statements::RESOLVE;
use bundle::LeasedMessage;
pub(super) use bundle::{Bundle, Bundles};

/// How many messages one statement looks up.
const RESOLVED_AT_ONCE: usize = 2000;

/// The result of one message, named by partition and transaction id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acknowledgement {
    partition: PartitionUid,
    transaction_id: String,
    group: GroupName,
    lease: Option<LeaseId>,
    outcome: Outcome,
    error: Option<String>,
    strict: bool,
}

impl Acknowledgement {
    /// The message is completed: by a consumer of the plain queue, without a lease.
    pub fn new(partition: PartitionUid, transaction_id: impl Into<String>) -> Self {
        Self {
            partition,
            transaction_id: transaction_id.into(),
            group: GroupName::queue_mode(),
            lease: None,
            outcome: Outcome::Completed,
            error: None,
            strict: false,
        }
    }

    /// Which group consumed it. Default: that of a plain queue.
    #[must_use]
    pub fn group(mut self, group: GroupName) -> Self {
        self.group = group;
        self
    }

    /// Under which lease. Default: none; then the ack is judged against the lease that the group
    /// has, and a queue that requires a lease refuses it.
    #[must_use]
    pub fn lease(mut self, lease: LeaseId) -> Self {
        self.lease = Some(lease);
        self
    }

    /// What became of the message. Default: completed.
    #[must_use]
    pub fn outcome(mut self, outcome: Outcome) -> Self {
        self.outcome = outcome;
        self
    }

    /// What went wrong; kept with the dead letter. Default: nothing; longer than 4,000 characters
    /// is cut.
    #[must_use]
    pub fn error(mut self, error: impl Into<String>) -> Self {
        self.error = Some(error.into());
        self
    }

    /// Refuse it if the lease it names has ended, even if no other consumer has claimed since.
    /// Default: not.
    #[must_use]
    pub fn strict(mut self) -> Self {
        self.strict = true;
        self
    }
}

/// Settles the acknowledgements of a call.
pub(super) async fn acknowledge(
    context: &MessagesContext,
    settler: &Settler,
    acknowledgements: Vec<Acknowledgement>,
) -> Vec<Result<Settled, MessagesError>> {
    let count = acknowledgements.len();
    let mut answers: Vec<Option<Result<Settled, MessagesError>>> =
        std::iter::repeat_with(|| None).take(count).collect();
    let Bundles { by_lease, refused } = match bundle_by_lease(context, settler, acknowledgements).await {
        Ok(bundles) => bundles,
        Err(error) => return vec![Err(error); count],
    };
    for (position, settled) in refused {
        answers[position] = Some(Ok(settled));
    }
    let mut bundles: Vec<Bundle> = by_lease.into_values().collect();
    // A bundle comes back when some of its messages were reported as not completed too late: those
    // are answered, and the others are settled again without them.
    while !bundles.is_empty() {
        let verdicts = settler.settle(bundles.iter().map(Bundle::settlement).collect()).await;
        for (bundle, verdict) in bundles.iter_mut().zip(verdicts) {
            for (position, answer) in bundle.answers(verdict) {
                answers[position] = Some(answer);
            }
        }
        bundles.retain(|bundle| !bundle.is_answered());
    }
    answers.into_iter().map(|answer| answer.unwrap_or(Ok(Settled::NotFound))).collect()
}

/// Finds the messages, in memory or in the log, and bundles the acknowledgements by lease.
pub(super) async fn bundle_by_lease(
    context: &MessagesContext,
    settler: &Settler,
    acknowledgements: Vec<Acknowledgement>,
) -> Result<Bundles, MessagesError> {
    let mut bundles = Bundles::default();
    let mut unknown = Vec::new();
    for (position, ack) in acknowledgements.into_iter().enumerate() {
        match remembered(settler, &ack) {
            Some(message) => bundles.add(message, position, ack),
            None => unknown.push((position, ack)),
        }
    }
    // All partitions at once, each once, however many acks name it.
    let uids = unknown.iter().map(|(_, ack)| ack.partition).collect();
    let partitions = context.catalog.by_uids(&context.database, uids).await?;
    let mut left = Vec::with_capacity(unknown.len());
    for (position, ack) in unknown {
        match partitions.get(&ack.partition) {
            // PostgreSQL's text holds no NUL: no message has such an id.
            Some(entry) if !ack.transaction_id.contains('\0') => {
                left.push(Unresolved { position, partition: entry.id, ack });
            }
            _ => bundles.refused.push((position, Settled::NotFound)),
        }
    }
    while !left.is_empty() {
        let rest = left.split_off(left.len().min(RESOLVED_AT_ONCE));
        resolve(context, settler, left, &mut bundles).await?;
        left = rest;
    }
    Ok(bundles)
}

/// The message in the memory of leases.
fn remembered(settler: &Settler, ack: &Acknowledgement) -> Option<LeasedMessage> {
    let lease = ack.lease?;
    let remembered = settler.memory.find(lease, ack.partition).filter(|remembered| remembered.group == ack.group)?;
    let seq = remembered.seq(&ack.transaction_id)?;
    Some(LeasedMessage { cursor: remembered.cursor, lease, seq, through: Some(remembered.through) })
}

/// An acknowledgement whose message must be looked up in the log.
struct Unresolved {
    /// Its position in the call.
    position: usize,
    partition: PartitionId,
    ack: Acknowledgement,
}

/// Looks up messages in the log.
async fn resolve(
    context: &MessagesContext,
    settler: &Settler,
    acks: Vec<Unresolved>,
    bundles: &mut Bundles,
) -> Result<(), MessagesError> {
    let partitions: Vec<i32> = acks.iter().map(|unresolved| unresolved.partition.0).collect();
    let groups: Vec<&str> = acks.iter().map(|unresolved| unresolved.ack.group.as_str()).collect();
    let ids: Vec<&str> = acks.iter().map(|unresolved| unresolved.ack.transaction_id.as_str()).collect();
    let rows = context.database.acquire().await?.query(&RESOLVE, &[&partitions, &groups, &ids]).await?;
    for (Unresolved { position, partition, ack }, row) in acks.into_iter().zip(&rows) {
        match resolved(row, partition, &ack) {
            Ok(message) => {
                if ack.lease.is_none() {
                    settler.unfenced.fetch_add(1, Ordering::Relaxed);
                }
                bundles.add(message, position, ack);
            }
            Err(settled) => bundles.refused.push((position, settled)),
        }
    }
    Ok(())
}

/// An ack without a lease is judged against the lease of the group. From here on that lease fences
/// it like any other.
fn resolved(row: &Row, partition: PartitionId, ack: &Acknowledgement) -> Result<LeasedMessage, Settled> {
    let (queue, group): (Option<i32>, Option<i32>) = (row.get("queue"), row.get("grp"));
    let (Some(queue), Some(group)) = (queue, group) else { return Err(Settled::NotFound) };
    if ack.lease.is_none() && row.get::<_, Option<bool>>("require_lease") == Some(true) {
        return Err(Settled::LeaseRequired);
    }
    let held = row.get::<_, Option<uuid::Uuid>>("nonce").map(LeaseId);
    let lease = match (ack.lease, held) {
        (Some(named), Some(held)) if named == held => held,
        (None, Some(held)) => held,
        _ => return Err(Settled::LeaseLost),
    };
    let cursor = CursorKey { partition, group: GroupId(group), queue: QueueId(queue) };
    let seq: Option<i64> = row.get("seq");
    seq.map(|seq| LeasedMessage { cursor, lease, seq, through: None }).ok_or(Settled::NotFound)
}
