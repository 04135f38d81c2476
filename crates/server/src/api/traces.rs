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

use super::answer::{self, PageRequest, Pagination};
use super::dead::{PAGE_MAX, page};
use crate::context::Context;
use crate::heavy::heavy;
use crate::problem::Problem;
use crate::request_body::Whole;
use crate::scales::ITEM_BYTES;
use crate::wire::json::{Carried, parse, present};
use crate::wire::names::{self, Names};
use crate::wire::query::Query;

/// Entries of one page, by default.
const PAGE: u32 = 100;
/// Bytes of an event type at most. It names the kind of entry; details belong in its data.
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

pub(super) async fn add(State(context): State<Arc<Context>>, Whole(body): Whole) -> Result<Response, Problem> {
    let fields: Body<'_> = parse(&body)?;
    let missing = |name: &str| Problem::invalid(format!("{name} is required"));
    let id = fields.transaction_id.ok_or_else(|| missing("transactionId"))?;
    let partition = fields.partition_id.ok_or_else(|| missing("partitionId"))?;
    let data = fields.data.ok_or_else(|| missing("data"))?;
    let partition = names::partition_uid(&partition).ok_or(NO_MESSAGE)?;
    let mut trace = NewTrace::new(partition, id, Payload::new(body.slice_ref(data.get().as_bytes())));
    if fields.consumer_group.is_some() {
        trace = trace.group(names::group(fields.consumer_group)?);
    }
    if let Some(event_type) = fields.event_type {
        if event_type.len() > EVENT_TYPE_MAX {
            return Err(Problem::invalid(format!("eventType is longer than {EVENT_TYPE_MAX} bytes")));
        }
        trace = trace.event_type(event_type);
    }
    trace = match fields.trace_names {
        Some(OneOrMany::One(name)) => trace.names([name]),
        Some(OneOrMany::Many(names)) => trace.names(names),
        None => trace,
    };
    let id = context.messages.trace(trace).await?.ok_or(NO_MESSAGE)?;
    Ok(answer::ok(&json!({ "success": true, "traceId": id.to_string() })))
}

pub(super) async fn of_message(
    State(context): State<Arc<Context>>,
    Names((partition, transaction)): Names<(String, String)>,
    query: Query,
) -> Result<Response, Problem> {
    let page = page(&query, PAGE_MAX)?;
    let (traces, total) = match names::partition_uid(&partition) {
        Some(partition) => context.messages.traces(partition, &transaction, page.in_messages()?).await?,
        None => (Vec::new(), 0),
    };
    Ok(page_of(page, &traces, total))
}

pub(super) async fn by_name(
    State(context): State<Arc<Context>>,
    Names(name): Names<String>,
    query: Query,
) -> Result<Response, Problem> {
    let page = page(&query, PAGE)?;
    let (traces, total) = context.messages.traces_named(&name, page.in_messages()?).await?;
    Ok(page_of(page, &traces, total))
}

pub(super) async fn names(State(context): State<Arc<Context>>, query: Query) -> Result<Response, Problem> {
    let page = page(&query, PAGE)?;
    let (names, total) = context.messages.trace_names(page.in_messages()?).await?;
    let entries = names.iter().map(|name| {
        json!({
            "trace_name": name.name,
            "trace_count": name.traces,
            "message_count": name.messages,
            "last_seen": moment::spell(name.last_at),
        })
    });
    let entries: Vec<_> = entries.collect();
    let pagination = Pagination::new(page, entries.len(), total);
    Ok(answer::ok(&json!({ "trace_names": entries, "total": total, "pagination": pagination })))
}

fn page_of(page: PageRequest, traces: &[Trace], total: i64) -> Response {
    let weight = traces.iter().map(|trace| trace.body.as_bytes().len() + ITEM_BYTES).sum();
    heavy(weight, || answer::ok(&TracePage::new(page, traces, total)))
}

#[derive(Debug, Serialize)]
struct TracePage<'a> {
    traces: Vec<Entry<'a>>,
    total: i64,
    pagination: Pagination,
}

impl<'a> TracePage<'a> {
    fn new(page: PageRequest, traces: &'a [Trace], total: i64) -> Self {
        let pagination = Pagination::new(page, traces.len(), total);
        Self { traces: traces.iter().map(Entry::new).collect(), total, pagination }
    }
}

#[derive(Debug, Serialize)]
struct Entry<'a> {
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

impl<'a> Entry<'a> {
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
