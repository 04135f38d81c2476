//! `/api/v1/traces`: what consumers noted about messages.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use reveille::messages::{NewTrace, Payload, Trace};
use reveille::moment;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::answer::{self, Asked, Pagination};
use super::dead::{PAGE_MAX, page};
use crate::body_door::Whole;
use crate::heavy::heavy;
use crate::problem::Problem;
use crate::scales::TOLD;
use crate::service::Service;
use crate::wire::json::{Carried, parse, present};
use crate::wire::names::{self, Names};
use crate::wire::query::Query;

/// Entries of one page, if nothing is said.
const PAGE: u32 = 100;
/// Bytes of a word that says what kind of note it is; what there is to tell belongs in its data.
const EVENT_TYPE_MAX: usize = 1000;
const NO_MESSAGE: Problem = Problem::new(StatusCode::NOT_FOUND, "no_such_message", "Message not found");

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body<'b> {
    transaction_id: Option<String>,
    partition_id: Option<String>,
    #[serde(borrow, default, deserialize_with = "present")]
    data: Option<&'b RawValue>,
    consumer_group: Option<String>,
    event_type: Option<String>,
    trace_names: Option<OneOrMany>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "must be a text or a list of texts")]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

pub(super) async fn add(State(service): State<Arc<Service>>, Whole(body): Whole) -> Result<Response, Problem> {
    let said: Body<'_> = parse(&body)?;
    let missing = |name: &str| Problem::invalid(format!("{name} is required"));
    let id = said.transaction_id.ok_or_else(|| missing("transactionId"))?;
    let partition = said.partition_id.ok_or_else(|| missing("partitionId"))?;
    let data = said.data.ok_or_else(|| missing("data"))?;
    let partition = names::partition_uid(&partition).ok_or(NO_MESSAGE)?;
    let mut trace = NewTrace::new(partition, id, Payload::new(body.slice_ref(data.get().as_bytes())));
    if said.consumer_group.is_some() {
        trace = trace.group(names::group(said.consumer_group)?);
    }
    if let Some(sort) = said.event_type {
        if sort.len() > EVENT_TYPE_MAX {
            return Err(Problem::invalid(format!("eventType is longer than {EVENT_TYPE_MAX} bytes")));
        }
        trace = trace.event_type(sort);
    }
    trace = match said.trace_names {
        Some(OneOrMany::One(name)) => trace.names([name]),
        Some(OneOrMany::Many(names)) => trace.names(names),
        None => trace,
    };
    let noted = service.messages.trace(trace).await?.ok_or(NO_MESSAGE)?;
    Ok(answer::ok(&json!({ "success": true, "traceId": noted.to_string() })))
}

pub(super) async fn of_message(
    State(service): State<Arc<Service>>,
    Names((partition, transaction)): Names<(String, String)>,
    query: Query,
) -> Result<Response, Problem> {
    let page = page(&query, PAGE_MAX)?;
    let (traces, total) = match names::partition_uid(&partition) {
        Some(partition) => service.messages.traces(partition, &transaction, page.in_messages()?).await?,
        None => (Vec::new(), 0),
    };
    Ok(noted(page, &traces, total))
}

pub(super) async fn by_name(
    State(service): State<Arc<Service>>,
    Names(name): Names<String>,
    query: Query,
) -> Result<Response, Problem> {
    let page = page(&query, PAGE)?;
    let (traces, total) = service.messages.traces_named(&name, page.in_messages()?).await?;
    Ok(noted(page, &traces, total))
}

pub(super) async fn names(State(service): State<Arc<Service>>, query: Query) -> Result<Response, Problem> {
    let page = page(&query, PAGE)?;
    let (names, total) = service.messages.trace_names(page.in_messages()?).await?;
    let told = names.iter().map(|name| {
        json!({
            "trace_name": name.name,
            "trace_count": name.traces,
            "message_count": name.messages,
            "last_seen": moment::spell(name.last_at),
        })
    });
    let told: Vec<_> = told.collect();
    let pagination = Pagination::new(page, told.len(), total);
    Ok(answer::ok(&json!({ "trace_names": told, "total": total, "pagination": pagination })))
}

fn noted(page: Asked, traces: &[Trace], total: i64) -> Response {
    let weight = traces.iter().map(|trace| trace.body.as_bytes().len() + TOLD).sum();
    heavy(weight, || answer::ok(&Noted::new(page, traces, total)))
}

#[derive(Debug, Serialize)]
struct Noted<'a> {
    traces: Vec<Told<'a>>,
    total: i64,
    pagination: Pagination,
}

impl<'a> Noted<'a> {
    fn new(page: Asked, traces: &'a [Trace], total: i64) -> Self {
        let pagination = Pagination::new(page, traces.len(), total);
        Self { traces: traces.iter().map(Told::new).collect(), total, pagination }
    }
}

#[derive(Debug, Serialize)]
struct Told<'a> {
    id: String,
    event_type: &'a str,
    data: Carried<'a>,
    consumer_group: Option<&'a str>,
    created_at: String,
    trace_names: &'a [String],
    transaction_id: &'a str,
    partition_id: Uuid,
    queue_name: &'a str,
    partition_name: &'a str,
}

impl<'a> Told<'a> {
    fn new(trace: &'a Trace) -> Self {
        Self {
            id: trace.id.to_string(),
            event_type: &trace.event_type,
            data: Carried::of(trace.body.as_bytes()),
            consumer_group: trace.group.as_deref(),
            created_at: moment::spell(trace.at),
            trace_names: &trace.names,
            transaction_id: &trace.transaction_id,
            partition_id: trace.partition_uid.0,
            queue_name: trace.queue.as_str(),
            partition_name: trace.partition.as_str(),
        }
    }
}
