//! `POST /api/v1/ack` and `POST /api/v1/ack/batch`: what consumers say about messages, by
//! transaction id.
//!
//! Answered with 200 and one entry for each item, whatever became of it; only a request that cannot
//! be understood, or a database that is away, is a fault of the whole.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use reveille::messages::{Acknowledgement, MessagesError, Outcome, PartitionName, PartitionUid, QueueName, Settled};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::answer;
use crate::body_door::Whole;
use crate::figures::Figures;
use crate::heavy::heavy;
use crate::problem::Problem;
use crate::scales::{TOLD, room_for};
use crate::service::Service;
use crate::wire::json::{Objects, parse};
use crate::wire::names;
use crate::wire::told::quoted;

/// In one request.
const ITEMS_MAX: usize = 100_000;

/// What is said about one message.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Said {
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
    acknowledgments: Option<Objects<Said, ITEMS_MAX>>,
    consumer_group: Option<String>,
}

pub(super) async fn one(State(service): State<Arc<Service>>, Whole(body): Whole) -> Result<Response, Problem> {
    let said: Said = parse(&body)?;
    if said.transaction_id.is_none() {
        return Err(Problem::invalid("transactionId is required"));
    }
    if said.partition_id.is_none() {
        return Err(Problem::invalid("partitionId is required to ensure message uniqueness"));
    }
    settle(&service, vec![said], None).await
}

pub(super) async fn batch(State(service): State<Arc<Service>>, Whole(body): Whole) -> Result<Response, Problem> {
    let many: Many = parse(&body)?;
    let Some(Objects(said)) = many.acknowledgments else {
        return Err(Problem::invalid("acknowledgments array is required"));
    };
    settle(&service, said, many.consumer_group).await
}

async fn settle(service: &Service, said: Vec<Said>, group: Option<String>) -> Result<Response, Problem> {
    service.figures.ack_requests.add(1);
    let telling = said.iter().map(|said| said.transaction_id.as_ref().map_or(0, String::len) + TOLD).sum();
    let _room = room_for(service, telling)?;
    let mut asked = Vec::with_capacity(said.len());
    let places: Vec<Result<(), String>> =
        heavy(telling, || said.iter().map(|said| said.read(group.as_deref()).map(|item| asked.push(item))).collect());
    let known = asked.len();
    let mut settled = service.messages.acknowledge(asked).await;
    // One cause for all of them: the database, or our end. Nothing was settled, and all of it may
    // be said again.
    if known > 0 && settled.iter().all(Result::is_err) {
        let first = settled.pop().and_then(Result::err).unwrap_or(MessagesError::Closed);
        service.figures.ack_refused.add(known);
        return Err(first.into());
    }
    let mut settled = settled.into_iter();
    let mut next = || settled.next().unwrap_or(Err(MessagesError::Closed));
    let became: Vec<Became> = places.into_iter().map(|place| place.map(|()| next())).collect();
    let names = names_of(service, said.iter().zip(&became)).await;
    Ok(heavy(telling, || {
        let told = became.into_iter().zip(&said).enumerate();
        let told: Vec<Told<'_>> = told.map(|(index, (became, said))| Told::new(index, said, became, &names)).collect();
        count(&service.figures, &told);
        answer::ok(&told)
    }))
}

fn count(figures: &Figures, told: &[Told<'_>]) {
    for item in told {
        if item.success {
            count_settled(figures, item.dlq);
        } else {
            figures.ack_refused.add(1);
        }
    }
}

pub(super) fn count_settled(figures: &Figures, dead: bool) {
    figures.acked.add(1);
    figures.dead.add(usize::from(dead));
}

/// What became of an item, or why it could not be asked.
type Became = Result<Result<Settled, MessagesError>, String>;
type PartitionNames = HashMap<PartitionUid, (QueueName, PartitionName)>;

/// What the partitions are called whose messages were found. They are remembered by now; where they
/// are not, and cannot be asked for, the acks were recorded all the same.
async fn names_of(service: &Service, items: impl Iterator<Item = (&Said, &Became)>) -> PartitionNames {
    let mut names = PartitionNames::new();
    for (said, became) in items {
        let Some(uid) = said.partition() else { continue };
        if matches!(became, Ok(Ok(Settled::NotFound)) | Err(_)) || names.contains_key(&uid) {
            continue;
        }
        if let Ok(Some(found)) = service.messages.partition_names(uid).await {
            names.insert(uid, found);
        }
    }
    names
}

impl Said {
    fn partition(&self) -> Option<PartitionUid> {
        self.partition_id.as_deref().and_then(names::partition_uid)
    }

    /// The same in the library's words, or why that cannot be.
    pub(super) fn read(&self, group: Option<&str>) -> Result<Acknowledgement, String> {
        let id = self.transaction_id.as_deref().ok_or("transactionId is required")?;
        let partition = self.partition_id.as_deref().ok_or("partitionId is required to ensure message uniqueness")?;
        let partition = names::partition_uid(partition).ok_or(NOT_FOUND)?;
        let group = group.map(ToOwned::to_owned).or_else(|| self.consumer_group.clone());
        let group = names::group(group).map_err(|problem| problem.sentence.into_owned())?;
        let said = Acknowledgement::new(partition, id).group(group).outcome(self.outcome()?).strict();
        let said = match self.lease_id.as_deref().filter(|id| !id.is_empty()) {
            Some(id) => said.lease(names::lease(id).ok_or(LEASE_LOST)?),
            None => said,
        };
        Ok(match &self.error {
            Some(Value::String(text)) => said.error(text),
            Some(Value::Null) | None => said,
            Some(other) => said.error(other.to_string()),
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

/// Why it was not settled; `None` when it was.
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

/// What became of one item, as it is spelt.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "as clients read it")]
struct Told<'a> {
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

impl<'a> Told<'a> {
    fn new(index: usize, said: &'a Said, became: Became, names: &'a PartitionNames) -> Self {
        let (settled, error) = match became {
            Ok(Ok(settled)) => (Some(settled), refusal(settled).map(ToOwned::to_owned)),
            Ok(Err(error)) => (None, Some(Problem::from(error).sentence.into_owned())),
            Err(sentence) => (None, Some(sentence)),
        };
        let (released, dead) = match settled {
            Some(Settled::Done { released, dead }) => (released, dead),
            _ => (false, false),
        };
        let place = said.partition().and_then(|uid| names.get(&uid));
        Self {
            index,
            transaction_id: said.transaction_id.as_deref(),
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
