//! `POST /api/v1/push` stores messages. Once they are durable, it answers with one entry for each,
//! in the order of the request.

mod item;

use std::borrow::Cow;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use bytes::Bytes;
use reveille::messages::{MessagesError, PartitionName, Payload, PushItem, PushOutcome, Pushed, QueueName};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::answer;
use crate::context::Context;
use crate::figures::Figures;
use crate::heavy::heavy;
use crate::problem::Problem;
use crate::request_body::Whole;
use crate::scales::{ITEM_BYTES, room_for};
use crate::wire::json::{Objects, parse};
use crate::wire::names;
pub(super) use item::Item;

/// In one request.
pub(super) const ITEMS_MAX: usize = 100_000;
/// The payload of a message that has none.
const NO_PAYLOAD: &[u8] = b"{}";

#[derive(Debug, Deserialize)]
struct Body<'b> {
    #[serde(borrow)]
    items: Option<Objects<Item<'b>, ITEMS_MAX>>,
}

pub(super) async fn push(State(context): State<Arc<Context>>, Whole(body): Whole) -> Result<Response, Problem> {
    context.figures.push_requests.add(1);
    let Read { items, messages } = heavy(body.len(), || Read::new(&body))?;
    let bytes = items.iter().map(Item::answer_bytes).sum();
    let _room = room_for(&context, bytes)?;
    let answers = send(&context, messages).await;
    count(&context.figures, &answers);
    if let Some(problem) = problem_of_all(&answers) {
        return Err(problem.clone());
    }
    Ok(heavy(bytes, || {
        let results = items.iter().zip(&answers).enumerate();
        let results: Vec<_> = results.map(|(index, (item, answer))| ItemResult::new(index, item, answer)).collect();
        answer::json(StatusCode::CREATED, &results)
    }))
}

/// A request that could be parsed.
struct Read<'b> {
    items: Vec<Item<'b>>,
    /// Each item as a message, or what is wrong with it.
    messages: Vec<Result<PushItem, Problem>>,
}

impl<'b> Read<'b> {
    fn new(body: &'b Bytes) -> Result<Self, Problem> {
        let request: Body<'_> = parse(body)?;
        let Some(Objects(items)) = request.items else { return Err(Problem::invalid("items array is required")) };
        let mut messages = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let queue = item.queue.as_deref().ok_or_else(|| missing_queue(index))?;
            messages.push(item.read(body, queue));
        }
        Ok(Self { items, messages })
    }
}

/// The first problem, if no item is known to be stored; then the same ids may be sent again. The
/// request as a whole says why, so that clients wait and try again where that helps.
fn problem_of_all(answers: &[Result<Pushed, Problem>]) -> Option<&Problem> {
    if answers.iter().any(Result::is_ok) {
        return None;
    }
    answers.iter().find_map(|answer| answer.as_ref().err())
}

fn missing_queue(index: usize) -> Problem {
    Problem::invalid(format!("Queue must be a string: items[{index}] names none"))
}

/// Pushes the valid messages. An invalid one keeps its place with its problem.
async fn send(context: &Context, messages: Vec<Result<PushItem, Problem>>) -> Vec<Result<Pushed, Problem>> {
    let (mut valid, mut problems) = (Vec::with_capacity(messages.len()), Vec::with_capacity(messages.len()));
    for message in messages {
        match message {
            Ok(message) => {
                valid.push(message);
                problems.push(None);
            }
            Err(problem) => problems.push(Some(problem)),
        }
    }
    let mut answers = context.messages.push(valid).await.into_iter();
    let mut next = || answers.next().unwrap_or(Err(MessagesError::Closed)).map_err(Problem::from);
    problems.into_iter().map(|problem| problem.map_or_else(&mut next, Err)).collect()
}

impl Item<'_> {
    /// About how many bytes its part of the answer takes.
    fn answer_bytes(&self) -> usize {
        [&self.queue, &self.transaction_id].into_iter().flatten().map(String::len).sum::<usize>() + ITEM_BYTES
    }

    /// The message, or what is wrong with it. Its payload is not copied out of the body.
    pub(super) fn read(&self, body: &Bytes, queue: &str) -> Result<PushItem, Problem> {
        let carried = self.payload.or(self.data).map(|raw| raw.get().as_bytes());
        let payload = carried.map_or(Bytes::from_static(NO_PAYLOAD), |bytes| body.slice_ref(bytes));
        let mut item = PushItem::new(QueueName::new(queue).map_err(names::of_name)?, Payload::new(payload));
        if let Some(partition) = &self.partition {
            item = item.partition(PartitionName::new(partition.as_str()).map_err(names::of_name)?);
        }
        if let Some(id) = self.transaction_id.as_deref().filter(|id| !id.is_empty()) {
            item = item.transaction_id(id);
        }
        match self.trace_id.as_deref().filter(|id| !id.is_empty()).map(Uuid::parse_str) {
            Some(Ok(id)) => Ok(item.trace_id(id)),
            Some(Err(_)) => Err(Problem::invalid("traceId must be a UUID")),
            None => Ok(item),
        }
    }
}

/// The result of one message, as clients read it.
#[derive(Debug, Serialize)]
struct ItemResult<'a> {
    index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    transaction_id: Option<Cow<'a, str>>,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    partition_id: Option<Uuid>,
    trace_id: Option<&'a str>,
    #[serde(rename = "queueName")]
    queue: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
}

impl<'a> ItemResult<'a> {
    fn new(index: usize, item: &'a Item<'_>, answer: &'a Result<Pushed, Problem>) -> Self {
        let stored = answer.as_ref().ok();
        let refused = answer.as_ref().err();
        Self {
            index,
            transaction_id: stored.map(Pushed::transaction_id),
            status: stored.map_or("failed", |pushed| word(&pushed.outcome)),
            message_id: stored.map(|pushed| pushed.id.0),
            partition_id: stored.and_then(|pushed| pushed.partition_uid).map(|uid| uid.0),
            trace_id: item.trace_id.as_deref(),
            queue: item.queue.as_deref().unwrap_or_default(),
            error: refused.map(|problem| &*problem.sentence),
            code: refused.map(|problem| problem.code),
        }
    }
}

fn word(outcome: &PushOutcome) -> &'static str {
    match outcome {
        PushOutcome::Duplicate { .. } => "duplicate",
        PushOutcome::Buffered => "buffered",
        _ => "queued",
    }
}

fn count(figures: &Figures, answers: &[Result<Pushed, Problem>]) {
    for answer in answers {
        match answer {
            Ok(pushed) => count_stored(figures, &pushed.outcome),
            Err(_) => figures.push_refused.add(1),
        }
    }
}

pub(super) fn count_stored(figures: &Figures, outcome: &PushOutcome) {
    let counter = match outcome {
        PushOutcome::Duplicate { .. } => &figures.duplicates,
        PushOutcome::Buffered => &figures.buffered,
        _ => &figures.pushed,
    };
    counter.add(1);
}
