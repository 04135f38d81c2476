//! `/api/v1/dlq`: messages that groups gave up on.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use reveille::messages::{DeadLetter, DeadLetterId, DeadLetters};
use reveille::moment;
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use super::answer::{self, PageRequest, Pagination};
use crate::context::Context;
use crate::heavy::heavy;
use crate::problem::Problem;
use crate::request_body::Whole;
use crate::scales::ITEM_BYTES;
use crate::wire::json::{Bounded, Carried, parse, slip};
use crate::wire::moment::moment_of;
use crate::wire::names::{self, Names};
use crate::wire::query::Query;
use crate::wire::quote::quoted;

/// Letters of one page, by default.
const PAGE: u32 = 100;
/// Letters of one page at most. The library limits its bytes.
pub(super) const PAGE_MAX: u32 = 1000;
/// The fields of a body that choose letters.
const FILTERS: [&str; 8] = ["ids", "queue", "consumerGroup", "partition", "from", "to", "text", "all"];
/// Letters that one request may name.
const LETTERS_MAX: usize = 10_000;

pub(super) async fn list(State(context): State<Arc<Context>>, query: Query) -> Result<Response, Problem> {
    let page = page(&query, PAGE)?;
    let which = Which::of_query(&query).read()?;
    let found = context.messages.dead_letters(&which, page.in_messages()?).await?;
    let carried = |letter: &DeadLetter| letter.payload.as_ref().map_or(0, |payload| payload.as_bytes().len());
    let weight = found.letters.iter().map(|letter| carried(letter) + ITEM_BYTES).sum();
    Ok(heavy(weight, || {
        answer::ok(&LetterPage {
            messages: found.letters.iter().map(Letter::new).collect(),
            total: found.total,
            pagination: Pagination::new(page, found.letters.len(), found.total),
        })
    }))
}

/// Returns letters to their queues: those named in `ids`, or all that match.
pub(super) async fn redrive(State(context): State<Arc<Context>>, Whole(body): Whole) -> Result<Response, Problem> {
    let which: Which = parse(&body)?;
    // A filter that is misspelt beside `all` would redrive everything.
    slip::refuse(&body, &FILTERS)?;
    let redriven = match which.letters()? {
        Some(letters) => context.messages.redrive(&letters).await?,
        None => context.messages.redrive_all(&which.chosen()?).await?,
    };
    Ok(answer::ok(&json!({ "success": true, "redriven": redriven })))
}

pub(super) async fn redrive_one(
    State(context): State<Arc<Context>>,
    Names(letter): Names<String>,
) -> Result<Response, Problem> {
    let redriven = context.messages.redrive(&[letter_id(&letter)?]).await?;
    Ok(answer::ok(&json!({ "success": redriven > 0, "redriven": redriven })))
}

pub(super) async fn delete_one(
    State(context): State<Arc<Context>>,
    Names(letter): Names<String>,
) -> Result<Response, Problem> {
    let deleted = context.messages.delete_dead_letters(&[letter_id(&letter)?]).await?;
    Ok(answer::ok(&json!({ "deleted": deleted > 0, "count": deleted })))
}

pub(super) async fn delete_all(State(context): State<Arc<Context>>, query: Query) -> Result<Response, Problem> {
    let mut which = Which::of_query(&query);
    which.all = query.flag("all")?;
    let deleted = context.messages.delete_all_dead_letters(&which.chosen()?).await?;
    Ok(answer::ok(&json!({ "deleted": deleted > 0, "count": deleted })))
}

/// `limit` and `offset`, the first within bounds.
pub(super) fn page(query: &Query, usual: u32) -> Result<PageRequest, Problem> {
    let limit = query.count("limit")?.unwrap_or(usual).min(PAGE_MAX);
    Ok(PageRequest { limit, offset: query.count("offset")?.unwrap_or(0) })
}

/// Which letters, as a query or a body spells it.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Which {
    ids: Option<Bounded<serde_json::Value, LETTERS_MAX>>,
    queue: Option<String>,
    consumer_group: Option<String>,
    partition: Option<String>,
    from: Option<String>,
    to: Option<String>,
    text: Option<String>,
    all: Option<bool>,
}

impl Which {
    fn of_query(query: &Query) -> Self {
        Self {
            ids: None,
            queue: query.owned("queue"),
            consumer_group: query.owned("consumerGroup"),
            partition: query.owned("partition"),
            from: query.owned("from"),
            to: query.owned("to"),
            text: query.owned("text"),
            all: None,
        }
    }

    fn letters(&self) -> Result<Option<Vec<DeadLetterId>>, Problem> {
        let Some(Bounded(ids)) = &self.ids else { return Ok(None) };
        let read = |id: &serde_json::Value| match id {
            serde_json::Value::String(text) => letter_id(text),
            other => letter_id(&other.to_string()),
        };
        ids.iter().map(read).collect::<Result<Vec<_>, _>>().map(Some)
    }

    /// For requests that change something: all letters only with `all: true`.
    fn chosen(&self) -> Result<DeadLetters, Problem> {
        let which = self.read()?;
        if which == DeadLetters::all() && self.all != Some(true) {
            return Err(Problem::invalid(
                "say which ones: ids, queue, consumerGroup, partition, from, to, text, or all: true",
            ));
        }
        Ok(which)
    }

    fn read(&self) -> Result<DeadLetters, Problem> {
        let mut which = DeadLetters::all();
        if let Some(queue) = &self.queue {
            which = which.queue(names::queue(queue.clone())?);
        }
        if self.consumer_group.is_some() {
            which = which.group(names::group(self.consumer_group.clone())?);
        }
        if let Some(partition) = &self.partition {
            which = which.partition(names::partition(partition.clone())?);
        }
        if let Some(from) = &self.from {
            which = which.since(moment_of("from", from)?);
        }
        if let Some(to) = &self.to {
            which = which.before(moment_of("to", to)?);
        }
        if let Some(text) = &self.text {
            which = which.text(text.clone());
        }
        Ok(which)
    }
}

fn letter_id(text: &str) -> Result<DeadLetterId, Problem> {
    let number = text.parse().map_err(|_| Problem::invalid(format!("{} is no id of a dead letter", quoted(text))))?;
    Ok(DeadLetterId(number))
}

#[derive(Debug, Serialize)]
struct LetterPage<'a> {
    messages: Vec<Letter<'a>>,
    total: i64,
    pagination: Pagination,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Letter<'a> {
    /// A text, like all ids of Queen.
    id: String,
    message_id: Uuid,
    transaction_id: &'a str,
    partition_id: Uuid,
    queue: &'a str,
    partition: &'a str,
    consumer_group: Option<&'a str>,
    error_message: Option<&'a str>,
    retry_count: i32,
    deliveries: i32,
    data: Option<Carried<'a>>,
    producer_sub: Option<&'a str>,
    trace_id: Option<Uuid>,
    created_at: String,
    failed_at: String,
}

impl<'a> Letter<'a> {
    fn new(letter: &'a DeadLetter) -> Self {
        Self {
            id: letter.id.0.to_string(),
            message_id: letter.message_id.0,
            transaction_id: &letter.transaction_id,
            partition_id: letter.partition_uid.0,
            queue: letter.queue.as_str(),
            partition: letter.partition.as_str(),
            consumer_group: letter.group.as_ref().map(reveille::messages::GroupName::as_str),
            error_message: letter.error.as_deref(),
            retry_count: letter.failures,
            deliveries: letter.deliveries,
            data: letter.payload.as_ref().map(|payload| Carried::of(payload.as_bytes())),
            producer_sub: letter.producer.as_deref(),
            trace_id: letter.trace_id,
            created_at: moment::spell(letter.pushed_at),
            failed_at: moment::spell(letter.dead_at),
        }
    }
}
