//! `/api/v1/resources`: queues, namespaces and tasks.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use reveille::messages::{MessagesError, Page, QueueDescription, QueueLag, QueueList, QueueName, Space};
use reveille::moment;
use serde_json::{Value, json};

use super::answer;
use super::configure::spelt;
use crate::context::Context;
use crate::problem::Problem;
use crate::wire::names::{self, Names};
use crate::wire::query::Query;

/// Queues of one page.
const PAGE: u32 = 1000;
/// Groups that are listed with their queue.
const GROUPS: u32 = 1000;

/// Ordered by name; the next page begins `after` the last queue of this one.
pub(super) async fn list(State(context): State<Arc<Context>>, query: Query) -> Result<Response, Problem> {
    let mut which = QueueList::new().limit(query.count("limit")?.unwrap_or(PAGE).clamp(1, PAGE).into());
    for (name, choose) in [
        ("namespace", QueueList::namespace as fn(_, String) -> _),
        ("task", QueueList::task),
        ("search", QueueList::text),
    ] {
        if let Some(text) = query.owned(name) {
            which = choose(which, without_nul(text)?);
        }
    }
    if let Some(name) = query.owned("after") {
        which = which.after(names::queue(name)?);
    }
    let queues = context.messages.queues(&which).await?;
    let names: Vec<QueueName> = queues.iter().map(|queue| queue.name.clone()).collect();
    let lags = context.messages.queue_lags(&names).await?;
    let lags: HashMap<&str, &QueueLag> = lags.iter().map(|lag| (lag.queue.as_str(), lag)).collect();
    let queues: Vec<Value> =
        queues.iter().map(|queue| summary(queue, lags.get(queue.name.as_str()).copied())).collect();
    Ok(answer::ok(&json!({ "queues": queues })))
}

pub(super) async fn one(State(context): State<Arc<Context>>, Names(name): Names<String>) -> Result<Response, Problem> {
    let name = names::queue(name)?;
    let Some(queue) = context.messages.queue(&name).await? else {
        return Err(MessagesError::NoQueue { queue: name.to_string() }.into());
    };
    let groups = context.messages.groups_page(Some(&name), None, Page::new(GROUPS, 0)?).await?;
    let groups: Vec<Value> = groups.iter().map(super::groups::spelt).collect();
    let lags = context.messages.queue_lags(std::slice::from_ref(&name)).await?;
    let mut answer = summary(&queue, lags.first());
    answer["options"] = spelt(&queue);
    answer["consumerGroups"] = groups.into();
    Ok(answer::ok(&answer))
}

pub(super) async fn delete(
    State(context): State<Arc<Context>>,
    Names(name): Names<String>,
) -> Result<Response, Problem> {
    let name = names::queue(name)?;
    let existed = context.messages.delete_queue(&name).await?;
    Ok(answer::ok(&json!({ "deleted": existed, "queue": name.as_str(), "existed": existed })))
}

/// Deletes all messages of the queue; one partition alone cannot be cleared.
pub(super) async fn clear(
    State(context): State<Arc<Context>>,
    Names(name): Names<String>,
    query: Query,
) -> Result<Response, Problem> {
    if query.text("partition").is_some() {
        return Err(Problem::invalid("a queue is cleared as a whole: move the groups of one partition with seek"));
    }
    let name = names::queue(name)?;
    let cleared = context.messages.purge(&name).await?;
    Ok(answer::ok(&json!({ "success": true, "queue": name.as_str(), "cleared": cleared })))
}

pub(super) async fn namespaces(State(context): State<Arc<Context>>) -> Result<Response, Problem> {
    let spaces = context.messages.namespaces().await?;
    Ok(answer::ok(&json!({ "namespaces": spaces_spelt("namespace", &spaces) })))
}

pub(super) async fn tasks(State(context): State<Arc<Context>>) -> Result<Response, Problem> {
    let spaces = context.messages.tasks().await?;
    Ok(answer::ok(&json!({ "tasks": spaces_spelt("task", &spaces) })))
}

fn spaces_spelt(key: &str, spaces: &[Space]) -> Vec<Value> {
    spaces.iter().map(|space| json!({ key: space.name, "queues": space.queues })).collect()
}

fn summary(queue: &QueueDescription, lag: Option<&QueueLag>) -> Value {
    let total = queue.messages.unwrap_or_default();
    json!({
        "id": queue.uid,
        "name": queue.name.as_str(),
        "namespace": queue.namespace,
        "task": queue.task,
        "createdAt": moment::spell(queue.created_at),
        "partitions": queue.partitions,
        // Without a consumer group everything is pending.
        "messages": {
            "total": total,
            "pending": lag.map_or(total, |lag| lag.lag),
            "leasedPartitions": lag.map_or(0, |lag| lag.leases),
        },
    })
}

fn without_nul(text: String) -> Result<String, Problem> {
    if text.contains('\0') {
        return Err(Problem::new(StatusCode::BAD_REQUEST, "invalid_request", "a text contains a NUL character"));
    }
    Ok(text)
}
