//! `POST /api/v1/ack` and `POST /api/v1/ack/batch`: consumers settle messages by transaction id.
//!
//! The answer is 200 with one entry for each item, settled or refused. The request as a whole fails
//! only if it cannot be parsed, if a single ack lacks an id, if the database does not answer, or if
//! the server is overloaded or shuts down.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use reveille::messages::{Acknowledgement, MessagesError, Outcome, PartitionName, PartitionUid, QueueName, Settled};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::answer;
use crate::context::Context;
use crate::figures::Figures;
use crate::heavy::heavy;
use crate::problem::Problem;
use crate::request_body::Whole;
use crate::scales::{ITEM_BYTES, room_for};
use crate::wire::json::{Objects, parse};
use crate::wire::names;
use crate::wire::quote::quoted;

/// In one request.
const ITEMS_MAX: usize = 100_000;

/// The ack of one message, as clients spell it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AckItem {
    pub(super) transaction_id: Option<String>,
    pub(super) partition_id: Option<String>,
    pub(super) status: Option<String>,
    pub(super) consumer_group: Option<String>,
    pub(super) error: Option<Value>,
    pub(super) lease_id: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Many {
    acknowledgments: Option<Objects<AckItem, ITEMS_MAX>>,
    consumer_group: Option<String>,
}

pub(super) async fn one(State(context): State<Arc<Context>>, Whole(body): Whole) -> Result<Response, Problem> {
    let item: AckItem = parse(&body)?;
    if item.transaction_id.is_none() {
        return Err(Problem::invalid("transactionId is required"));
    }
    if item.partition_id.is_none() {
        return Err(Problem::invalid("partitionId is required to ensure message uniqueness"));
    }
    settle(&context, vec![item], None).await
}

pub(super) async fn batch(State(context): State<Arc<Context>>, Whole(body): Whole) -> Result<Response, Problem> {
    let many: Many = parse(&body)?;
    let Some(Objects(items)) = many.acknowledgments else {
        return Err(Problem::invalid("acknowledgments array is required"));
    };
    settle(&context, items, many.consumer_group).await
}

async fn settle(context: &Context, items: Vec<AckItem>, group: Option<String>) -> Result<Response, Problem> {
    context.figures.ack_requests.add(1);
    let bytes = items.iter().map(|item| item.transaction_id.as_ref().map_or(0, String::len) + ITEM_BYTES).sum();
    let _room = room_for(context, bytes)?;
    let mut acks = Vec::with_capacity(items.len());
    let places: Vec<Result<(), String>> =
        heavy(bytes, || items.iter().map(|item| item.read(group.as_deref()).map(|ack| acks.push(ack))).collect());
    let readable = acks.len();
    let mut settled = context.messages.acknowledge(acks).await;
    // All of them failed for one cause: the database, or our shutdown. No item is known to be
    // settled; the same ids may be sent again.
    if readable > 0 && settled.iter().all(Result::is_err) {
        let first = settled.pop().and_then(Result::err).unwrap_or(MessagesError::Closed);
        context.figures.ack_refused.add(readable);
        return Err(first.into());
    }
    let mut settled = settled.into_iter();
    let mut next = || settled.next().unwrap_or(Err(MessagesError::Closed));
    let outcomes: Vec<ItemOutcome> = places.into_iter().map(|place| place.map(|()| next())).collect();
    let names = names_of(context, items.iter().zip(&outcomes)).await;
    Ok(heavy(bytes, || {
        let results = outcomes.into_iter().zip(&items).enumerate();
        let results: Vec<ItemResult<'_>> =
            results.map(|(index, (outcome, item))| ItemResult::new(index, item, outcome, &names)).collect();
        count(&context.figures, &results);
        answer::ok(&results)
    }))
}

fn count(figures: &Figures, results: &[ItemResult<'_>]) {
    for result in results {
        if result.success {
            count_settled(figures, result.dlq);
        } else {
            figures.ack_refused.add(1);
        }
    }
}

pub(super) fn count_settled(figures: &Figures, dead: bool) {
    figures.acked.add(1);
    figures.dead.add(usize::from(dead));
}

/// The outcome of an item, or why the item could not be read.
type ItemOutcome = Result<Result<Settled, MessagesError>, String>;
type PartitionNames = HashMap<PartitionUid, (QueueName, PartitionName)>;

/// The names of the partitions whose messages were found. Most are cached by now. A name that
/// cannot be read is left out, because the acks are already recorded.
async fn names_of(context: &Context, items: impl Iterator<Item = (&AckItem, &ItemOutcome)>) -> PartitionNames {
    let mut names = PartitionNames::new();
    for (item, outcome) in items {
        let Some(uid) = item.partition() else { continue };
        if matches!(outcome, Ok(Ok(Settled::NotFound)) | Err(_)) || names.contains_key(&uid) {
            continue;
        }
        if let Ok(Some(found)) = context.messages.partition_names(uid).await {
            names.insert(uid, found);
        }
    }
    names
}

impl AckItem {
    fn partition(&self) -> Option<PartitionUid> {
        self.partition_id.as_deref().and_then(names::partition_uid)
    }

    /// The ack for the library, or why it cannot be read.
    pub(super) fn read(&self, group: Option<&str>) -> Result<Acknowledgement, String> {
        let id = self.transaction_id.as_deref().ok_or("transactionId is required")?;
        let partition = self.partition_id.as_deref().ok_or("partitionId is required to ensure message uniqueness")?;
        let partition = names::partition_uid(partition).ok_or(NOT_FOUND)?;
        let group = group.map(ToOwned::to_owned).or_else(|| self.consumer_group.clone());
        let group = names::group(group).map_err(|problem| problem.sentence.into_owned())?;
        let ack = Acknowledgement::new(partition, id).group(group).outcome(self.outcome()?).strict();
        let ack = match self.lease_id.as_deref().filter(|id| !id.is_empty()) {
            Some(id) => ack.lease(names::lease(id).ok_or(LEASE_LOST)?),
            None => ack,
        };
        Ok(match &self.error {
            Some(Value::String(text)) => ack.error(text),
            Some(Value::Null) | None => ack,
            Some(other) => ack.error(other.to_string()),
        })
    }

    fn outcome(&self) -> Result<Outcome, String> {
        match self.status.as_deref() {
            None | Some("completed" | "success" | "acked" | "ok") => Ok(Outcome::Completed),
            Some("failed") => Ok(Outcome::Failed),
            Some("retry") => Ok(Outcome::Retry),
            Some("dlq") => Ok(Outcome::Dead),
            Some(other) => Err(format!("status must be completed, failed, retry or dlq, not {}", quoted(other))),
        }
    }
}

const NOT_FOUND: &str = "Message not found";
const LEASE_LOST: &str = "invalid or expired lease";

/// Why the message was not settled; `None` when it was.
pub(super) fn refusal(settled: Settled) -> Option<&'static str> {
    match settled {
        Settled::Done { .. } | Settled::Already => None,
        Settled::Passed => Some("already committed: the message was settled before this"),
        Settled::Redelivered => Some("comes again: a message before it was not completed in the same call"),
        Settled::LeaseLost | Settled::Expired => Some(LEASE_LOST),
        Settled::LeaseRequired => Some("this queue wants a leaseId with every ack"),
        Settled::Outside => Some("unresolvable: the message is not part of this lease"),
        _ => Some(NOT_FOUND),
    }
}

/// The result of one item, as clients read it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "as clients read it")]
struct ItemResult<'a> {
    index: usize,
    transaction_id: Option<&'a str>,
    success: bool,
    error: Option<String>,
    queue_name: Option<&'a str>,
    partition_name: Option<&'a str>,
    lease_released: bool,
    dlq: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    noop: bool,
}

impl<'a> ItemResult<'a> {
    fn new(index: usize, item: &'a AckItem, outcome: ItemOutcome, names: &'a PartitionNames) -> Self {
        let (settled, error) = match outcome {
            Ok(Ok(settled)) => (Some(settled), refusal(settled).map(ToOwned::to_owned)),
            Ok(Err(error)) => (None, Some(Problem::from(error).sentence.into_owned())),
            Err(sentence) => (None, Some(sentence)),
        };
        let (released, dead) = match settled {
            Some(Settled::Done { released, dead }) => (released, dead),
            _ => (false, false),
        };
        let place = item.partition().and_then(|uid| names.get(&uid));
        Self {
            index,
            transaction_id: item.transaction_id.as_deref(),
            success: error.is_none(),
            error,
            queue_name: place.map(|(queue, _)| queue.as_str()),
            partition_name: place.map(|(_, partition)| partition.as_str()),
            lease_released: released,
            dlq: dead,
            noop: settled == Some(Settled::Already),
        }
    }
}
