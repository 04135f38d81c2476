//! `POST /api/v1/push` stores messages, and answers for each in its place once they are durable.

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
use crate::body_door::Whole;
use crate::figures::Figures;
use crate::heavy::heavy;
use crate::problem::Problem;
use crate::scales::{TOLD, room_for};
use crate::service::Service;
use crate::wire::json::{Objects, parse};
use crate::wire::names;
pub(super) use item::Item;

/// In one request.
pub(super) const ITEMS_MAX: usize = 100_000;
/// What a message carries that says nothing about it.
const NO_PAYLOAD: &[u8] = b"{}";

#[derive(Debug, Deserialize)]
struct Body<'b> {
    #[serde(borrow)]
    items: Option<Objects<Item<'b>, ITEMS_MAX>>,
}

pub(super) async fn push(State(service): State<Arc<Service>>, Whole(body): Whole) -> Result<Response, Problem> {
    service.figures.push_requests.add(1);
    let Read { items, asked } = heavy(body.len(), || Read::new(&body))?;
    let telling = items.iter().map(Item::told).sum();
    let _room = room_for(&service, telling)?;
    let answers = send(&service, asked).await;
    count(&service.figures, &answers);
    // Nothing was stored: the request as a whole says why, so that clients wait and try again where
    // that helps.
    let refused = answers.iter().all(Result::is_err).then(|| answers.iter().find_map(|answer| answer.as_ref().err()));
    if let Some(problem) = refused.flatten() {
        return Err(problem.clone());
    }
    Ok(heavy(telling, || {
        let told = items.iter().zip(&answers).enumerate();
        let told: Vec<_> = told.map(|(index, (item, answer))| Told::new(index, item, answer)).collect();
        answer::json(StatusCode::CREATED, &told)
    }))
}

/// A request that was understood.
struct Read<'b> {
    items: Vec<Item<'b>>,
    /// Each as a message, or what is wrong with it.
    asked: Vec<Result<PushItem, Problem>>,
}

impl<'b> Read<'b> {
    fn new(body: &'b Bytes) -> Result<Self, Problem> {
        let said: Body<'_> = parse(body)?;
        let Some(Objects(items)) = said.items else { return Err(Problem::invalid("items array is required")) };
        let mut asked = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let queue = item.queue.as_deref().ok_or_else(|| missing_queue(index))?;
            asked.push(item.read(body, queue));
        }
        Ok(Self { items, asked })
    }
}

fn missing_queue(index: usize) -> Problem {
    Problem::invalid(format!("Queue must be a string: items[{index}] names none"))
}

/// Push what can be pushed; what cannot is answered in its place.
async fn send(service: &Service, asked: Vec<Result<PushItem, Problem>>) -> Vec<Result<Pushed, Problem>> {
    let (mut items, mut places) = (Vec::with_capacity(asked.len()), Vec::with_capacity(asked.len()));
    for item in asked {
        places.push(item.map(|item| items.push(item)));
    }
    let mut stored = service.messages.push(items).await.into_iter();
    let mut next = || stored.next().unwrap_or(Err(MessagesError::Closed)).map_err(Problem::from);
    places.into_iter().map(|place| place.and_then(|()| next())).collect()
}

impl Item<'_> {
    /// About how many bytes are told about it.
    fn told(&self) -> usize {
        [&self.queue, &self.transaction_id].into_iter().flatten().map(String::len).sum::<usize>() + TOLD
    }

    /// The message, or what is wrong with it. Its payload stays where it is in the body.
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

/// What became of one message, as it is spelt.
#[derive(Debug, Serialize)]
struct Told<'a> {
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

impl<'a> Told<'a> {
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
    let counter = match word(outcome) {
        "duplicate" => &figures.duplicates,
        "buffered" => &figures.buffered,
        _ => &figures.pushed,
    };
    counter.add(1);
}
