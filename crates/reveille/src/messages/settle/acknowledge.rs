//! Acks by transaction id: one call may have many messages, leases and partitions.
//!
//! Owns the bundles, each with all acknowledgements of one lease in a call. A cursor can only move
//! forward, so a bundle becomes one settlement by three rules. The first message that was not
//! completed stops everything behind it, whatever the call reports of later messages. Messages
//! before a completed one that the call does not mention are completed with it. A lease is charged
//! once for a call, however many of its messages failed.
//!
//! Next: [`super::Settler`], which sends the settlements; [`super::work`], which settles them.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use tokio_postgres::Row;

use super::Settler;
use super::settlement::{CursorKey, End, Outcome, Settled, Settlement};
use super::work::Verdict;
use crate::messages::context::MessagesContext;
use crate::messages::error::MessagesError;
use crate::messages::ids::{GroupId, LeaseId, PartitionId, PartitionUid, QueueId};
use crate::messages::name::GroupName;
use crate::messages::statements::RESOLVE;

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
    let mut bundles = match bundle(context, settler, acknowledgements).await {
        Ok((bundles, refused)) => {
            for (at, settled) in refused {
                answers[at] = Some(Ok(settled));
            }
            bundles
        }
        Err(error) => return vec![Err(error); count],
    };
    while !bundles.is_empty() {
        let verdicts = settler.settle(bundles.iter().map(Bundle::settlement).collect()).await;
        let mut again = Vec::new();
        for (mut bundle, verdict) in bundles.into_iter().zip(verdicts) {
            match verdict {
                Ok(verdict) => {
                    for (at, settled) in bundle.judge(verdict) {
                        answers[at] = Some(Ok(settled));
                    }
                }
                Err(error) => {
                    for item in bundle.items.drain(..) {
                        answers[item.at] = Some(Err(error.clone()));
                    }
                }
            }
            again.extend((!bundle.items.is_empty()).then_some(bundle));
        }
        bundles = again;
    }
    answers.into_iter().map(|answer| answer.unwrap_or(Ok(Settled::NotFound))).collect()
}

/// All acknowledgements of one lease in a call.
#[derive(Debug)]
pub(in crate::messages) struct Bundle {
    cursor: CursorKey,
    lease: LeaseId,
    strict: bool,
    /// The last sequence of the lease, if this process remembers it.
    through: Option<i64>,
    items: Vec<Item>,
}

#[derive(Debug)]
struct Item {
    /// Its position in the call.
    at: usize,
    seq: i64,
    outcome: Outcome,
    error: Option<String>,
}

/// The bundles of a call, and the answers to acknowledgements that belong to none.
pub(in crate::messages) type Bundled = (Vec<Bundle>, Vec<(usize, Settled)>);

/// Finds the messages, in memory or in the log, and bundles the acknowledgements by lease.
pub(in crate::messages) async fn bundle(
    context: &MessagesContext,
    settler: &Settler,
    acknowledgements: Vec<Acknowledgement>,
) -> Result<Bundled, MessagesError> {
    let mut bundles: HashMap<(CursorKey, LeaseId), Bundle> = HashMap::new();
    let (mut refused, mut unknown) = (Vec::new(), Vec::new());
    for (at, ack) in acknowledgements.into_iter().enumerate() {
        let remembered = ack.lease.and_then(|lease| settler.memory.find(lease, ack.partition));
        let remembered = remembered.filter(|remembered| remembered.group == ack.group);
        let seq = remembered.as_ref().and_then(|remembered| remembered.seq(&ack.transaction_id));
        match (remembered, ack.lease, seq) {
            (Some(remembered), Some(lease), Some(seq)) => {
                add(&mut bundles, remembered.cursor, lease, Some(remembered.through), ack.at(at, seq));
            }
            _ => unknown.push((at, ack)),
        }
    }
    // All partitions at once, each once, however many acks name it.
    let uids = unknown.iter().map(|(_, ack)| ack.partition).collect();
    let partitions = context.catalog.by_uids(&context.database, uids).await?;
    let mut left = Vec::with_capacity(unknown.len());
    for (at, ack) in unknown {
        match partitions.get(&ack.partition) {
            // PostgreSQL's text holds no NUL: no message has such an id.
            Some(entry) if !ack.transaction_id.contains('\0') => left.push((at, entry.id, ack)),
            _ => refused.push((at, Settled::NotFound)),
        }
    }
    while !left.is_empty() {
        let rest = left.split_off(left.len().min(RESOLVED_AT_ONCE));
        resolve(context, settler, left, &mut bundles, &mut refused).await?;
        left = rest;
    }
    Ok((bundles.into_values().collect(), refused))
}

/// Looks up messages in the log.
async fn resolve(
    context: &MessagesContext,
    settler: &Settler,
    acks: Vec<(usize, PartitionId, Acknowledgement)>,
    bundles: &mut HashMap<(CursorKey, LeaseId), Bundle>,
    refused: &mut Vec<(usize, Settled)>,
) -> Result<(), MessagesError> {
    let partitions: Vec<i32> = acks.iter().map(|(_, partition, _)| partition.0).collect();
    let groups: Vec<&str> = acks.iter().map(|(.., ack)| ack.group.as_str()).collect();
    let ids: Vec<&str> = acks.iter().map(|(.., ack)| ack.transaction_id.as_str()).collect();
    let rows = context.database.acquire().await?.query(&RESOLVE, &[&partitions, &groups, &ids]).await?;
    for ((at, partition, ack), row) in acks.into_iter().zip(&rows) {
        match resolved(row, partition, &ack) {
            Ok((cursor, lease, seq)) => {
                if ack.lease.is_none() {
                    settler.unfenced.fetch_add(1, Ordering::Relaxed);
                }
                add(bundles, cursor, lease, None, ack.at(at, seq));
            }
            Err(settled) => refused.push((at, settled)),
        }
    }
    Ok(())
}

/// An ack without a lease is judged against the lease of the group. From here on that lease fences
/// it like any other.
fn resolved(row: &Row, partition: PartitionId, ack: &Acknowledgement) -> Result<(CursorKey, LeaseId, i64), Settled> {
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
    let seq: Option<i64> = row.get("seq");
    let cursor = CursorKey { partition, group: GroupId(group), queue: QueueId(queue) };
    seq.map(|seq| (cursor, lease, seq)).ok_or(Settled::NotFound)
}

/// An item for a bundle, and whether an ended lease counts against it.
struct NewItem {
    item: Item,
    strict: bool,
}

fn add(
    bundles: &mut HashMap<(CursorKey, LeaseId), Bundle>,
    cursor: CursorKey,
    lease: LeaseId,
    through: Option<i64>,
    new: NewItem,
) {
    let bundle = bundles.entry((cursor, lease)).or_insert_with(|| Bundle {
        cursor,
        lease,
        strict: false,
        through: None,
        items: Vec::new(),
    });
    bundle.strict |= new.strict;
    bundle.through = bundle.through.or(through);
    bundle.items.push(new.item);
}

impl Acknowledgement {
    /// An ended lease counts only against an ack that names it.
    fn at(self, at: usize, seq: i64) -> NewItem {
        let strict = self.strict && self.lease.is_some();
        NewItem { item: Item { at, seq, outcome: self.outcome, error: self.error }, strict }
    }
}

impl Bundle {
    /// The first message that was not completed, with its worst result; else the last completed
    /// message.
    pub(in crate::messages) fn settlement(&self) -> Settlement {
        let stop = self.items.iter().filter(|item| item.outcome != Outcome::Completed);
        let stop = stop.min_by_key(|item| (item.seq, std::cmp::Reverse(item.outcome)));
        let last = self.items.iter().map(|item| item.seq).max().unwrap_or_default();
        let end = match stop {
            Some(stop) => End::at(stop.seq, stop.outcome, stop.error.clone()),
            None if self.through == Some(last) => End::Whole(last),
            None => End::Through(last),
        };
        Settlement { cursor: self.cursor, lease: Some(self.lease), end, strict: self.strict }
    }

    /// Answers for the items that the verdict is about. The others stay, to be settled again
    /// without these.
    pub(in crate::messages) fn judge(&mut self, verdict: Verdict) -> Vec<(usize, Settled)> {
        let stop = match self.settlement().end {
            End::At(seq, ..) => Some(seq),
            End::Whole(_) | End::Through(_) | End::Released => None,
        };
        let before = verdict.before.unwrap_or(i64::MIN);
        if verdict.settled == Settled::Passed {
            let late =
                |item: &mut Item| item.outcome != Outcome::Completed && item.seq <= before.max(stop.unwrap_or(before));
            return self.items.extract_if(.., late).map(|item| (item.at, Settled::Passed)).collect();
        }
        let items = std::mem::take(&mut self.items);
        items.iter().map(|item| (item.at, item.judge(verdict.settled, before, stop))).collect()
    }
}

impl Item {
    fn judge(&self, settled: Settled, before: i64, stop: Option<i64>) -> Settled {
        let behind = stop.is_some_and(|stop| self.seq > stop);
        match (settled, self.outcome) {
            (Settled::Done { .. } | Settled::Already, Outcome::Completed) if self.seq <= before => Settled::Already,
            (Settled::Done { .. }, Outcome::Completed | Outcome::Dead) if behind => Settled::Redelivered,
            // One call reported it both as completed and as not completed.
            (Settled::Done { dead: false, .. }, Outcome::Completed) if stop == Some(self.seq) => Settled::Redelivered,
            (Settled::Done { released, dead }, _) => Settled::Done { released, dead: dead && stop == Some(self.seq) },
            // The lease was given back before: its messages are delivered again.
            (Settled::Already, Outcome::Completed) if stop.is_some() => Settled::Redelivered,
            (other, _) => other,
        }
    }
}
