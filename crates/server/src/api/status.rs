//! `GET /api/v1/status`: how this node is doing, without asking the database.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use prometheus::core::Metric as _;
use reveille::messages::BatcherFigures;
use reveille_wake::{Outcome, PollMode};
use serde_json::{Value, json};

use super::answer;
use crate::context::Context;
use crate::figures::Figures;

pub(super) async fn status(State(context): State<Arc<Context>>) -> Response {
    let (figures, messages) = (&context.figures, context.messages.figures());
    let wake = context.messages.database().wake_figures();
    let free = messages.batchers.iter().filter(|batcher| !batcher.busy).count();
    let (poll_mode, because) = match messages.poll_mode {
        PollMode::Long => ("long", None),
        PollMode::Fallback { because, .. } => ("watchful", Some(because.name())),
    };
    answer::ok(&json!({
        "server": "reveille",
        "version": env!("CARGO_PKG_VERSION"),
        "uptimeSeconds": figures.started.elapsed().as_secs(),
        "registry": {
            "waiting": messages.waiting,
            "parked": figures.parked.read(),
            "limit": context.limits.max_waiters,
            "groups": messages.keys,
            "groupsInFlight": messages.keys_in_flight,
            "groupsBackedOff": messages.keys_backed_off,
        },
        "lanes": {
            "connections": messages.batchers.len(),
            "free": free,
            "each": messages.batchers.iter().map(batcher).collect::<Vec<_>>(),
        },
        "batching": batching(figures, &messages.batchers),
        "wake": {
            "link": messages.link.name(),
            "pace": poll_mode,
            "paceBecause": because,
            "latencyMs": latency(figures),
            "echoMs": wake.echo.as_secs_f64() * 1000.0,
            "peers": wake.peers,
            "hintsHeard": wake.received,
            "hintsAnnounced": wake.announced,
            "hintStatements": wake.sent,
            "listenConnects": wake.connects,
            "heartbeats": wake.beats,
            "missed": figures.wake.missed(),
            "undelivered": figures.wake.undelivered(),
        },
        "looks": rounds(figures),
        "messages": {
            "pushed": figures.pushed.read(),
            "duplicates": figures.duplicates.read(),
            "buffered": figures.buffered.read(),
            "popped": figures.popped.read(),
            "acked": figures.acked.read(),
            "ackFailed": figures.ack_refused.read(),
            "deadLettered": figures.dead.read() + messages.buried_by_claims,
            "unfencedAcks": messages.unfenced_acknowledgements,
            "repairs": messages.repairs,
        },
        "refusedAsOverloaded": figures.overloaded.read(),
        "panics": figures.panics.read(),
        "answerBytesInFlight": context.answers.taken(),
    }))
}

fn rounds(figures: &Figures) -> Value {
    json!({
        "all": figures.wake.all_rounds(),
        "fruitful": figures.fruitful_rounds(),
        "empty": figures.wake.rounds(Outcome::Empty),
        "contended": figures.wake.rounds(Outcome::Contended),
        "failed": figures.wake.rounds(Outcome::Failed),
        "leasesReturned": figures.wake.returned(),
    })
}

fn batcher(batcher: &BatcherFigures) -> Value {
    json!({ "name": batcher.name, "batches": batcher.batches, "items": batcher.items, "busy": batcher.busy })
}

/// How much one statement carries: items in a flush by kind of batcher, and keys in a claim round.
fn batching(figures: &Figures, batchers: &[BatcherFigures]) -> Value {
    let of = |prefix: &str| {
        let batchers = batchers.iter().filter(|batcher| batcher.name.starts_with(prefix));
        let (items, batches) =
            batchers.fold((0, 0), |(items, batches), batcher| (items + batcher.items, batches + batcher.batches));
        ratio(items, batches)
    };
    json!({
        "push": of("push"),
        "ack": of("ack"),
        "pop": ratio(figures.popped.read(), figures.fruitful_rounds()),
        "keysPerLook": ratio(figures.round_keys.read(), figures.wake.all_rounds()),
    })
}

#[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
fn ratio(part: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| part as f64 / of as f64)
}

/// From a wake-up to the end of its claim round: mean, and percentiles as upper bounds of buckets.
#[expect(clippy::cast_precision_loss, reason = "figures for people")]
fn latency(figures: &Figures) -> Value {
    let (count, sum) = (figures.wake_latency.get_sample_count(), figures.wake_latency.get_sample_sum());
    let read = figures.wake_latency.metric();
    let at = |share: f64| {
        let rank = (count as f64 * share).ceil();
        let bucket = read.get_histogram().get_bucket().iter().find(|bucket| bucket.cumulative_count() as f64 >= rank);
        bucket.map(|bucket| bucket.upper_bound() * 1000.0)
    };
    match count {
        0 => json!({ "count": 0, "mean": null, "p50AtMost": null, "p99AtMost": null }),
        _ => json!({
            "count": count, "mean": sum * 1000.0 / count as f64, "p50AtMost": at(0.5), "p99AtMost": at(0.99),
        }),
    }
}
