//! `/api/v1/messages`: reading messages without consuming them.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use reveille::messages::{Browse, GroupView, MessageState, Seen};
use reveille::moment;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::answer;
use super::dead::page;
use crate::context::Context;
use crate::problem::Problem;
use crate::wire::json::Carried;
use crate::wire::names::{self, Names};
use crate::wire::query::Query;
use crate::wire::quote::quoted;

/// Messages of one page, by default.
const PAGE: u32 = 200;
const NO_MESSAGE: Problem = Problem::new(StatusCode::NOT_FOUND, "no_such_message", "Message not found");

pub(super) async fn list(State(context): State<Arc<Context>>, query: Query) -> Result<Response, Problem> {
    let page = page(&query, PAGE)?;
    let mut which = Browse::all();
    if let Some(queue) = query.owned("queue") {
        which = which.queue(names::queue(queue)?);
    }
    if let Some(partition) = query.owned("partition") {
        which = which.partition(names::partition(partition)?);
    }
    if let Some(namespace) = query.owned("ns").or_else(|| query.owned("namespace")) {
        which = which.namespace(namespace);
    }
    if let Some(task) = query.owned("task") {
        which = which.task(task);
    }
    if let Some(from) = query.moment("from")? {
        which = which.since(from);
    }
    if let Some(to) = query.moment("to")? {
        which = which.before(to);
    }
    if let Some(word) = query.text("status") {
        which = which.state(state(word)?);
    }
    let seen = context.messages.browse(&which, page.in_messages()?).await?;
    Ok(answer::ok(&json!({ "messages": seen.iter().map(spelt).collect::<Vec<_>>() })))
}

pub(super) async fn one(
    State(context): State<Arc<Context>>,
    Names((partition, transaction)): Names<(String, String)>,
) -> Result<Response, Problem> {
    let partition = names::partition_uid(&partition).ok_or(NO_MESSAGE)?;
    let found = context.messages.find(partition, &transaction).await?.ok_or(NO_MESSAGE)?;
    let mut message = spelt(&found.message);
    message["isEncrypted"] = found.message.sealed.into();
    message["consumerGroups"] = found.groups.iter().map(view).collect();
    let mut text = message.to_string();
    // Spliced in unparsed: parsing it would change how numbers and duplicate keys are spelt.
    let payload = found.payload.as_ref().map(|payload| Carried::of(payload.as_bytes()));
    let payload = serde_json::value::to_raw_value(&payload).ok();
    let payload = payload.as_deref().map_or("null", RawValue::get);
    text.truncate(text.len() - 1);
    text.push_str(",\"payload\":");
    text.push_str(payload);
    text.push('}');
    Ok(answer::of_bytes(StatusCode::OK, text.into_bytes()))
}

pub(super) async fn delete(
    State(context): State<Arc<Context>>,
    Names((partition, transaction)): Names<(String, String)>,
) -> Result<Response, Problem> {
    let deleted = match names::partition_uid(&partition) {
        Some(uid) => context.messages.delete_message(uid, &transaction).await?,
        None => false,
    };
    if !deleted {
        return Err(NO_MESSAGE);
    }
    Ok(answer::ok(&json!({
        "success": true, "partitionId": partition, "transactionId": transaction, "message": "Message deleted",
    })))
}

fn state(word: &str) -> Result<MessageState, Problem> {
    match word {
        "pending" => Ok(MessageState::Pending),
        "processing" => Ok(MessageState::Leased),
        "completed" => Ok(MessageState::Completed),
        "dead_letter" | "failed" => Ok(MessageState::Dead),
        other => Err(Problem::invalid(format!(
            "status must be pending, processing, completed or dead_letter, not {}",
            quoted(other)
        ))),
    }
}

fn word(state: MessageState) -> &'static str {
    match state {
        MessageState::Pending => "pending",
        MessageState::Leased => "processing",
        MessageState::Completed => "completed",
        MessageState::Dead => "dead_letter",
    }
}

fn spelt(seen: &Seen) -> Value {
    json!({
        "id": seen.id.0,
        "transactionId": seen.transaction_id,
        "partitionId": seen.partition_uid.0,
        "queuePath": format!("{}/{}", seen.queue, seen.partition),
        "queue": seen.queue.as_str(),
        "partition": seen.partition.as_str(),
        "status": word(seen.state),
        "busStatus": { "consumedBy": seen.settled_by, "totalGroups": seen.groups },
        "traceId": seen.trace_id,
        "producerSub": seen.producer,
        "createdAt": moment::spell(seen.created_at),
    })
}

fn view(view: &GroupView) -> Value {
    json!({
        "name": view.group.as_str(),
        "status": word(view.state),
        "leaseExpiresAt": view.lease_until.map(moment::spell),
        "retryCount": view.failures,
        "errorMessage": view.error,
    })
}
