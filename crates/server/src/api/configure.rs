//! `POST /api/v1/configure`: create a queue, or change it.
//!
//! Only the named options change, unless `mode` is `replace`. The answer has every option with its
//! new value. An unknown option is refused: it was meant for one that would now stay unchanged.

mod flags;
mod options;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use reveille::messages::QueueDescription;
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer;
use crate::context::Context;
use crate::problem::Problem;
use crate::request_body::Whole;
use crate::wire::json::{Object, parse, slip};
use crate::wire::names;
use crate::wire::quote::quoted;
use flags::Flags;
use options::Options;

const FIELDS: [&str; 5] = ["queue", "namespace", "task", "mode", "options"];

#[derive(Debug, Deserialize)]
struct Body {
    queue: Option<String>,
    namespace: Option<String>,
    task: Option<String>,
    mode: Option<String>,
    options: Option<Object<Options>>,
}

pub(super) async fn configure(State(context): State<Arc<Context>>, Whole(body): Whole) -> Result<Response, Problem> {
    let raw = body;
    let body: Body = parse(&raw)?;
    refuse_misplaced(&raw)?;
    let name = names::queue(body.queue.ok_or_else(|| Problem::invalid("queue is required"))?)?;
    let replace = match body.mode.as_deref() {
        None | Some("merge") => false,
        Some("replace") => true,
        Some(other) => return Err(Problem::invalid(format!("mode must be merge or replace, not {}", quoted(other)))),
    };
    let Object(given) = body.options.unwrap_or_default();
    given.flags().check()?;
    let before = if replace { None } else { context.messages.queue(&name).await? };
    let flags = given.flags().over(before.as_ref().map(Flags::of));
    let mut options = given.read(before.is_none())?;
    options = flags.choose(options).echo(flags.spelt());
    if replace {
        options = options.replace();
    }
    if let Some(namespace) = body.namespace {
        options = options.namespace(namespace);
    }
    if let Some(task) = body.task {
        options = options.task(task);
    }
    let queue = context.messages.configure(&name, &options).await?;
    Ok(answer::ok(&json!({
        "configured": true,
        "queueId": queue.uid,
        "partitionId": null,
        "queue": queue.name.as_str(),
        "namespace": queue.namespace,
        "task": queue.task,
        "options": spelt(&queue),
    })))
}

/// Refuses an option beside `options`, where it would be ignored, and a misspelt field.
fn refuse_misplaced(body: &[u8]) -> Result<(), Problem> {
    if let Some(option) = slip::names(body)?.iter().find(|name| options::NAMES.contains(&name.as_str())) {
        return Err(Problem::invalid(format!("{option} belongs in options")));
    }
    slip::refuse(body, &FIELDS)
}

/// The current options of a queue.
pub(super) fn spelt(queue: &QueueDescription) -> Value {
    let flags = Flags::of(queue);
    json!({
        "leaseTime": seconds(queue.lease),
        "maxSize": queue.max_size,
        "ttl": seconds(queue.ttl),
        "retryLimit": queue.retry_limit,
        "retryDelay": whole(queue.retry_delay.as_secs_f64() * 1000.0),
        "deadLetterQueue": flags.dead_letter_queue.unwrap_or(queue.dead_letters),
        "dlqAfterMaxRetries": flags.dlq_after_max_retries.unwrap_or(queue.dead_letters),
        "priority": queue.priority,
        "delayedProcessing": seconds(queue.delay),
        "windowBuffer": seconds(queue.window_buffer),
        "retentionSeconds": whole(flags.retention_seconds.unwrap_or(queue.retention.as_secs_f64())),
        "completedRetentionSeconds":
            whole(flags.completed_retention_seconds.unwrap_or(queue.completed_retention.as_secs_f64())),
        "retentionEnabled":
            flags.retention_enabled.unwrap_or(!queue.retention.is_zero() || !queue.completed_retention.is_zero()),
        "encryptionEnabled": queue.encrypted,
        "maxWaitTimeSeconds": seconds(queue.max_wait),
        "maxDeliveries": queue.max_deliveries,
        "dedupWindowSeconds": seconds(queue.dedup_window),
        "requireLease": queue.require_lease,
        "durableAcks": queue.durable_acks,
        "quiet": queue.quiet,
        "paused": queue.paused,
    })
}

fn time(name: &str, seconds: Option<f64>) -> Result<Option<Duration>, Problem> {
    let Some(seconds) = seconds else { return Ok(None) };
    Duration::try_from_secs_f64(seconds).map(Some).map_err(|_| Problem {
        status: StatusCode::BAD_REQUEST,
        code: "out_of_range",
        sentence: format!("{name} must be zero or more, and less than a lifetime, not {seconds}").into(),
    })
}

fn seconds(time: Duration) -> Value {
    whole(time.as_secs_f64())
}

/// Whole numbers without a decimal point, as clients gave them.
fn whole(number: f64) -> Value {
    #[expect(clippy::cast_possible_truncation, reason = "whole and small, as was just seen")]
    if number.fract() == 0.0 && number.abs() < 1e15 { json!(number as i64) } else { json!(number) }
}
