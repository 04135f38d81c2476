//! Acks of messages by what their producer calls them: one call may speak of many messages, leases
//! and partitions.
//!
//! Promises what the cursor of a group can keep: in one call the first message that was not
//! completed stops everything behind it, whatever is said of the rest; messages nobody mentioned,
//! before one that was completed, are completed with it; and a lease is charged once for a call,
//! however many of its messages failed.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use tokio_postgres::Row;

use super::Settler;
use super::settlement::{End, Outcome, Place, Settled, Settlement};
use super::work::Verdict;
use crate::messages::context::MessagesContext;
use crate::messages::error::MessagesError;
use crate::messages::ids::{GroupId, LeaseId, PartitionId, PartitionUid, QueueId};
use crate::messages::name::GroupName;
use crate::messages::statements::RESOLVE;

/// Looked up by one statement.
const RESOLVED_AT_ONCE: usize = 2000;

/// What a consumer says about one message, named by partition and transaction id.
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
    /// The message is completed, says a consumer of the plain queue who names no lease.
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

    /// Under which lease. Default: none; then the ack is judged against whatever lease the group
    /// has, unless the queue wants one named.
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

    /// Refuse it when the lease it names has ended, even if nobody else has claimed since. Default:
    /// not.
    #[must_use]
    pub fn strict(mut self) -> Self {
        self.strict = true;
        self
    }
}

/// Settle what many acknowledgements say together.
pub(super) async fn acknowledge(
    context: &MessagesContext,
    settler: &Settler,
    acknowledgements: Vec<Acknowledgement>,
) -> Vec<Result<Settled, MessagesError>> {
    let count = acknowledgements.len();
    let mut answers: Vec<Option<Result<Settled, MessagesError>>> =
        std::iter::repeat_with(|| None).take(count).collect();
    let mut bundles = match bundled(context, settler, acknowledgements).await {
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

/// What one call says about one lease.
#[derive(Debug)]
pub(in crate::messages) struct Bundle {
    place: Place,
    lease: LeaseId,
    strict: bool,
    /// The last sequence of the lease, where it is remembered.
    through: Option<i64>,
    items: Vec<Item>,
}

#[derive(Debug)]
struct Item {
    /// Its place in the call.
    at: usize,
    seq: i64,
    outcome: Outcome,
    error: Option<String>,
}

/// What could be found out before anything is settled: bundles, and answers to those that belong to
/// none.
pub(in crate::messages) type Bundled = (Vec<Bundle>, Vec<(usize, Settled)>);

/// Find the messages, in memory or in the log, and put together what belongs to one lease.
pub(in crate::messages) async fn bundled(
    context: &MessagesContext,
    settler: &Settler,
    acknowledgements: Vec<Acknowledgement>,
) -> Result<Bundled, MessagesError> {
    let mut bundles: HashMap<(Place, LeaseId), Bundle> = HashMap::new();
    let (mut refused, mut unknown) = (Vec::new(), Vec::new());
    for (at, said) in acknowledgements.into_iter().enumerate() {
        let remembered = said.lease.and_then(|lease| settler.memory.find(lease, said.partition));
        let remembered = remembered.filter(|remembered| remembered.group == said.group);
        let seq = remembered.as_ref().and_then(|remembered| remembered.seq(&said.transaction_id));
        match (remembered, said.lease, seq) {
            (Some(remembered), Some(lease), Some(seq)) => {
                add(&mut bundles, remembered.place, lease, Some(remembered.through), said.at(at, seq));
            }
            _ => unknown.push((at, said)),
        }
    }
    // All partitions at once: those that are not there are asked for once, however many acks name
    // them.
    let uids = unknown.iter().map(|(_, said)| said.partition).collect();
    let partitions = context.catalog.by_uids(&context.database, uids).await?;
    let mut asked = Vec::with_capacity(unknown.len());
    for (at, said) in unknown {
        match partitions.get(&said.partition) {
            // PostgreSQL's text holds no NUL: no message has such an id.
            Some(entry) if !said.transaction_id.contains('\0') => asked.push((at, entry.id, said)),
            _ => refused.push((at, Settled::NotFound)),
        }
    }
    while !asked.is_empty() {
        let rest = asked.split_off(asked.len().min(RESOLVED_AT_ONCE));
        resolve(context, settler, asked, &mut bundles, &mut refused).await?;
        asked = rest;
    }
    Ok((bundles.into_values().collect(), refused))
}

async fn resolve(
    context: &MessagesContext,
    settler: &Settler,
    asked: Vec<(usize, PartitionId, Acknowledgement)>,
    bundles: &mut HashMap<(Place, LeaseId), Bundle>,
    refused: &mut Vec<(usize, Settled)>,
) -> Result<(), MessagesError> {
    let partitions: Vec<i32> = asked.iter().map(|(_, partition, _)| partition.0).collect();
    let groups: Vec<&str> = asked.iter().map(|(.., said)| said.group.as_str()).collect();
    let ids: Vec<&str> = asked.iter().map(|(.., said)| said.transaction_id.as_str()).collect();
    let rows = context.database.acquire().await?.query(&RESOLVE, &[&partitions, &groups, &ids]).await?;
    for ((at, partition, said), row) in asked.into_iter().zip(&rows) {
        match found(row, partition, &said) {
            Ok((place, lease, seq)) => {
                if said.lease.is_none() {
                    settler.unfenced.fetch_add(1, Ordering::Relaxed);
                }
                add(bundles, place, lease, None, said.at(at, seq));
            }
            Err(settled) => refused.push((at, settled)),
        }
    }
    Ok(())
}

/// An ack without lease is judged against the group's own, and from here on fenced by it like any
/// other.
fn found(row: &Row, partition: PartitionId, said: &Acknowledgement) -> Result<(Place, LeaseId, i64), Settled> {
    let (queue, group): (Option<i32>, Option<i32>) = (row.get("queue"), row.get("grp"));
    let (Some(queue), Some(group)) = (queue, group) else { return Err(Settled::NotFound) };
    if said.lease.is_none() && row.get::<_, Option<bool>>("require_lease") == Some(true) {
        return Err(Settled::LeaseRequired);
    }
    let held = row.get::<_, Option<uuid::Uuid>>("nonce").map(LeaseId);
    let lease = match (said.lease, held) {
        (Some(said), Some(held)) if said == held => held,
        (None, Some(held)) => held,
        _ => return Err(Settled::LeaseLost),
    };
    let seq: Option<i64> = row.get("seq");
    let place = Place { partition, group: GroupId(group), queue: QueueId(queue) };
    seq.map(|seq| (place, lease, seq)).ok_or(Settled::NotFound)
}

/// What is said of one message, and whether an ended lease counts against it.
struct Said {
    item: Item,
    strict: bool,
}

fn add(
    bundles: &mut HashMap<(Place, LeaseId), Bundle>,
    place: Place,
    lease: LeaseId,
    through: Option<i64>,
    said: Said,
) {
    let bundle = bundles.entry((place, lease)).or_insert_with(|| Bundle {
        place,
        lease,
        strict: false,
        through: None,
        items: Vec::new(),
    });
    bundle.strict |= said.strict;
    bundle.through = bundle.through.or(through);
    bundle.items.push(said.item);
}

impl Acknowledgement {
    /// An ended lease counts only against those who name it.
    fn at(self, at: usize, seq: i64) -> Said {
        let strict = self.strict && self.lease.is_some();
        Said { item: Item { at, seq, outcome: self.outcome, error: self.error }, strict }
    }
}

impl Bundle {
    /// The first message that was not completed, the worst that is said of it; else the last
    /// completed one.
    pub(in crate::messages) fn settlement(&self) -> Settlement {
        let stop = self.items.iter().filter(|item| item.outcome != Outcome::Completed);
        let stop = stop.min_by_key(|item| (item.seq, std::cmp::Reverse(item.outcome)));
        let last = self.items.iter().map(|item| item.seq).max().unwrap_or_default();
        let end = match stop {
            Some(stop) => End::at(stop.seq, stop.outcome, stop.error.clone()),
            None if self.through == Some(last) => End::Whole(last),
            None => End::Through(last),
        };
        Settlement { place: self.place, lease: Some(self.lease), end, strict: self.strict }
    }

    /// Answers for those the verdict is about; those that must be settled again without them stay.
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
            // One call said both that it is completed and that it is not.
            (Settled::Done { dead: false, .. }, Outcome::Completed) if stop == Some(self.seq) => Settled::Redelivered,
            (Settled::Done { released, dead }, _) => Settled::Done { released, dead: dead && stop == Some(self.seq) },
            // The lease was given back before: whatever it held comes again.
            (Settled::Already, Outcome::Completed) if stop.is_some() => Settled::Redelivered,
            (other, _) => other,
        }
    }
}
