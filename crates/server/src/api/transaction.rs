//! `POST /api/v1/transaction`: pushes and acks in one commit, or neither.
//!
//! Answered with 200 and `success`, as clients expect; a refusal says why in `reason` and `error`, and nothing happened.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use reveille::messages::{Changes, MessagesError, Pushed, Settled, TransactionOutcome};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use uuid::Uuid;

use super::ack::{self, Said};
use super::answer;
use super::push::{self, Item};
use crate::body_door::Whole;
use crate::figures::Figures;
use crate::problem::Problem;
use crate::service::Service;
use crate::wire::json::{Bounded, Objects, parse, present};

/// In one request.
const OPERATIONS_MAX: usize = 10_000;

#[derive(Debug, Deserialize)]
struct Body<'b> {
    #[serde(borrow)]
    operations: Option<Objects<Operation<'b>, OPERATIONS_MAX>>,
    #[serde(rename = "requiredLeases")]
    required_leases: Option<Bounded<String, OPERATIONS_MAX>>,
}

/// A push has items, or is itself one; an ack is one.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Operation<'b> {
    r#type: Option<String>,
    #[serde(borrow)]
    items: Option<Objects<Item<'b>, OPERATIONS_MAX>>,
    queue: Option<String>,
    partition: Option<String>,
    #[serde(borrow, default, deserialize_with = "present")]
    payload: Option<&'b RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    data: Option<&'b RawValue>,
    trace_id: Option<String>,
    transaction_id: Option<String>,
    partition_id: Option<String>,
    status: Option<String>,
    consumer_group: Option<String>,
    error: Option<Value>,
    lease_id: Option<String>,
}

/// What an operation was, for its place in the answer.
enum Part {
    Push { queue: String },
    Ack { transaction_id: Option<String> },
}

/// Why nothing happened, in the words of Queen's clients.
struct Refusal {
    reason: &'static str,
    sentence: String,
}

impl Refusal {
    fn bad(sentence: impl Into<String>) -> Self {
        Self { reason: "bad_request", sentence: sentence.into() }
    }
}

pub(super) async fn transaction(State(service): State<Arc<Service>>, Whole(body): Whole) -> Result<Response, Problem> {
    let said: Body<'_> = parse(&body)?;
    let Some(Objects(operations)) = said.operations else {
        return Err(Problem::invalid("operations array required"));
    };
    if operations.is_empty() {
        return Err(Problem::invalid("operations array cannot be empty"));
    }
    let leases = said.required_leases.map_or_else(Vec::new, |Bounded(leases)| leases);
    let done = match gather(&body, operations, &leases) {
        Ok((changes, parts)) => commit(&service, changes, &parts).await?,
        Err(refusal) => Err(refusal),
    };
    let id = Uuid::now_v7();
    Ok(answer::ok(&match done {
        Ok(results) => {
            service.figures.transactions.add(1);
            json!({ "transactionId": id, "success": true, "results": results })
        }
        Err(Refusal { reason, sentence }) => {
            service.figures.transactions_refused.add(1);
            json!({ "transactionId": id, "success": false, "results": [], "reason": reason, "error": sentence })
        }
    }))
}

fn gather(body: &Bytes, operations: Vec<Operation<'_>>, leases: &[String]) -> Result<(Changes, Vec<Part>), Refusal> {
    let (mut changes, mut parts) = (Changes::new(), Vec::with_capacity(operations.len()));
    for (index, mut operation) in operations.into_iter().enumerate() {
        match operation.r#type.as_deref() {
            Some("push") => {
                let items = match operation.items.take() {
                    Some(Objects(items)) => items,
                    None => vec![operation.into_item()],
                };
                for item in items {
                    let queue = item.queue.clone();
                    let queue = queue.ok_or_else(|| Refusal::bad(format!("operations[{index}] names no queue")))?;
                    let read = item.read(body, &queue).map_err(|problem| Refusal::bad(problem.sentence))?;
                    changes = changes.push(read);
                    parts.push(Part::Push { queue });
                }
            }
            Some("ack") => {
                let said = operation.into_said(leases);
                let read = said.read(None).map_err(|sentence| Refusal { reason: "ack_rejected", sentence })?;
                changes = changes.acknowledge(read);
                parts.push(Part::Ack { transaction_id: said.transaction_id });
            }
            _ => return Err(Refusal::bad(format!("operations[{index}].type must be push or ack"))),
        }
    }
    Ok((changes, parts))
}

impl<'b> Operation<'b> {
    fn into_item(self) -> Item<'b> {
        Item {
            queue: self.queue,
            partition: self.partition,
            payload: self.payload,
            data: self.data,
            transaction_id: self.transaction_id,
            trace_id: self.trace_id,
        }
    }

    /// Old clients name the lease for all acks together; if it is one, it is this one's.
    fn into_said(self, leases: &[String]) -> Said {
        let only = match leases {
            [only] => Some(only.clone()),
            _ => None,
        };
        Said {
            transaction_id: self.transaction_id,
            partition_id: self.partition_id,
            status: self.status,
            consumer_group: self.consumer_group,
            error: self.error,
            lease_id: self.lease_id.or(only),
        }
    }
}

async fn commit(service: &Service, changes: Changes, parts: &[Part]) -> Result<Result<Vec<Value>, Refusal>, Problem> {
    let refused = |reason, sentence| Ok(Err(Refusal { reason, sentence }));
    match service.messages.transaction(changes).await {
        Ok(TransactionOutcome::Committed { pushed, settled }) => {
            count(&service.figures, &pushed, &settled);
            Ok(Ok(results(parts, pushed, settled)))
        }
        Ok(TransactionOutcome::Duplicate { push, of }) => {
            refused("duplicate", format!("push {push} was stored before, as message {of}"))
        }
        Ok(TransactionOutcome::Refused { ack, why }) => {
            let why = ack::refusal(why).unwrap_or("the message was settled before this");
            refused("ack_rejected", format!("ack {ack}: {why}"))
        }
        Ok(_) => refused("db_error", "the transaction did not commit".to_owned()),
        Err(error @ MessagesError::PayloadTooLarge { .. }) => refused("payload_too_large", error.to_string()),
        Err(error @ MessagesError::Nul { .. }) => refused("bad_request", error.to_string()),
        Err(error) => Err(error.into()),
    }
}

/// As if each had come alone. What a refused transaction would have done was not done, and counts as nothing.
fn count(figures: &Figures, pushed: &[Pushed], settled: &[Settled]) {
    for pushed in pushed {
        push::count_stored(figures, &pushed.outcome);
    }
    for settled in settled {
        ack::count_settled(figures, is_dead(*settled));
    }
}

fn is_dead(settled: Settled) -> bool {
    matches!(settled, Settled::Done { dead: true, .. })
}

fn results(parts: &[Part], pushed: Vec<Pushed>, settled: Vec<Settled>) -> Vec<Value> {
    let (mut pushed, mut settled) = (pushed.into_iter(), settled.into_iter());
    let told = parts.iter().enumerate().map(|(index, part)| match part {
        Part::Push { queue } => {
            let stored = pushed.next();
            json!({
                "index": index,
                "type": "push",
                "success": true,
                "transactionId": stored.as_ref().map(|stored| stored.transaction_id().into_owned()),
                "messageId": stored.as_ref().map(|stored| stored.id.0),
                "partitionId": stored.as_ref().and_then(|stored| stored.partition_uid).map(|uid| uid.0),
                "queueName": queue,
            })
        }
        Part::Ack { transaction_id } => {
            let dead = settled.next().is_some_and(is_dead);
            json!({
                "index": index, "type": "ack", "success": true, "transactionId": transaction_id, "error": null, "dlq": dead,
            })
        }
    });
    told.collect()
}
