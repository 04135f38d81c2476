//! `POST /api/v1/configure`: make a queue, or change it.
//!
//! Only what is named changes, unless `mode` is `replace`. Every option is echoed as it holds then.

mod flags;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use reveille::messages::{QueueDescription, QueueOptions};
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer;
use crate::body_door::Whole;
use crate::problem::Problem;
use crate::service::Service;
use crate::wire::json::parse;
use crate::wire::names;
use flags::Flags;

/// What Queen gives a queue that is configured without a lease time; one that a push makes has the library's own.
const CONFIGURED_LEASE: Duration = Duration::from_secs(300);

#[derive(Debug, Deserialize)]
struct Body {
    queue: Option<String>,
    namespace: Option<String>,
    task: Option<String>,
    mode: Option<String>,
    options: Option<Options>,
}

/// The fifteen of Queen, then our own. Times are in seconds, but for `retryDelay`, which is in milliseconds.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Options {
    lease_time: Option<f64>,
    max_size: Option<i64>,
    ttl: Option<f64>,
    retry_limit: Option<i64>,
    retry_delay: Option<f64>,
    priority: Option<i64>,
    delayed_processing: Option<f64>,
    window_buffer: Option<f64>,
    encryption_enabled: Option<bool>,
    max_wait_time_seconds: Option<f64>,
    #[serde(flatten)]
    flags: Flags,
    max_deliveries: Option<i64>,
    dedup_window_seconds: Option<f64>,
    require_lease: Option<bool>,
    durable_acks: Option<bool>,
    quiet: Option<bool>,
    paused: Option<bool>,
}

pub(super) async fn configure(State(service): State<Arc<Service>>, Whole(body): Whole) -> Result<Response, Problem> {
    let body: Body = parse(&body)?;
    let name = names::queue(body.queue.ok_or_else(|| Problem::invalid("queue is required"))?)?;
    let replace = match body.mode.as_deref() {
        None | Some("merge") => false,
        Some("replace") => true,
        Some(other) => return Err(Problem::invalid(format!("mode must be merge or replace, not {other:?}"))),
    };
    let given = body.options.unwrap_or_default();
    given.flags.check()?;
    let before = if replace { None } else { service.messages.queue(&name).await? };
    let flags = given.flags.over(before.as_ref().map(Flags::of));
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
    let queue = service.messages.configure(&name, &options).await?;
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

/// A queue's options as they hold.
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

impl Options {
    fn read(&self, is_new: bool) -> Result<QueueOptions, Problem> {
        let lease = time("leaseTime", self.lease_time)?.filter(|lease| !lease.is_zero());
        let mut options = QueueOptions::default();
        // A lease time of zero means the usual one to Queen.
        let unnamed = is_new || self.lease_time.is_some();
        if let Some(lease) = lease.or(unnamed.then_some(CONFIGURED_LEASE)) {
            options = options.lease(lease);
        }
        macro_rules! choose {
            ($($option:ident: $value:expr;)*) => {$(
                if let Some(value) = $value {
                    options = options.$option(value);
                }
            )*};
        }
        choose! {
            max_size: self.max_size;
            ttl: time("ttl", self.ttl)?;
            retry_limit: self.retry_limit;
            retry_delay: time("retryDelay", self.retry_delay.map(|ms| ms / 1000.0))?;
            priority: self.priority;
            delay: time("delayedProcessing", self.delayed_processing)?;
            window_buffer: time("windowBuffer", self.window_buffer)?;
            encrypted: self.encryption_enabled;
            max_wait: time("maxWaitTimeSeconds", self.max_wait_time_seconds)?;
            max_deliveries: self.max_deliveries;
            dedup_window: time("dedupWindowSeconds", self.dedup_window_seconds)?;
            require_lease: self.require_lease;
            durable_acks: self.durable_acks;
            quiet: self.quiet;
            paused: self.paused;
        }
        Ok(options)
    }
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

/// Whole numbers without a point: that is how they were given.
fn whole(number: f64) -> Value {
    #[expect(clippy::cast_possible_truncation, reason = "whole and small, as was just seen")]
    if number.fract() == 0.0 && number.abs() < 1e15 { json!(number as i64) } else { json!(number) }
}
