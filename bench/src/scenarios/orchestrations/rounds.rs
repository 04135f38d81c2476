//! What the three providers do, and in which order.

use std::time::Duration;

use futures_util::future::try_join_all;
use reveille_testkit::scenario::progress;
use serde_json::{Value, json};

use super::ceiling;
use super::found::Found;
use crate::bench::Bench;
use crate::peer::{Peer, number, numbers, order};

/// Counts the statements of all while they wait; then validates ours, and in a full run the others
/// too.
pub(super) async fn idle_and_validation(bench: &Bench, peers: &mut [Peer], found: &mut [Found]) -> anyhow::Result<()> {
    let span = bench.pick(Duration::from_secs(13), Duration::from_secs(60));
    progress(&format!("idle: 4+4 dispatchers of each wait for {} s", span.as_secs()));
    all(peers, &order("start_idle")).await?;
    // Start-up is over, and with it the first gauges.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let before = counts(peers).await?;
    tokio::time::sleep(span).await;
    let after = counts(peers).await?;
    all(peers, &order("stop_idle")).await?;
    for (place, found) in found.iter_mut().enumerate() {
        found.idle = (after[place] - before[place]) / span.as_secs_f64();
    }
    let validated = bench.pick(1, peers.len());
    for (peer, found) in peers.iter_mut().zip(found.iter_mut()).take(validated) {
        progress(&format!("validation suite on {}", peer.name));
        let answer = peer.ask(json!({ "do": "validate", "at_once": bench.pick(24, 12) })).await?;
        if answer["failed"].as_array().is_some_and(|failed| !failed.is_empty()) {
            progress(&format!("{} failed {}", peer.name, answer["failed"]));
        }
        found.validation = Some((number(&answer, "passed")?, number(&answer, "total")?));
    }
    Ok(())
}

/// Dispatch, whole orchestrations and timers, on a system that is otherwise idle.
pub(super) async fn latency(
    bench: &Bench,
    round: usize,
    peers: &mut [Peer],
    found: &mut [Found],
) -> anyhow::Result<()> {
    for (peer, found) in peers.iter_mut().zip(found) {
        progress(&format!("latency on {}, round {round}", peer.name));
        let fetches = peer.ask(json!({ "do": "latency", "count": bench.pick(8, 30) })).await?;
        found.turns.extend(numbers(&fetches, "turns_ms"));
        found.activities.extend(numbers(&fetches, "activities_ms"));
        let trips = json!({ "do": "round_trips", "count": bench.pick(12, 40), "timers": bench.pick(8, 40) });
        let trips = peer.ask(trips).await?;
        found.whole.push(numbers(&trips, "whole_ms"));
        found.late.extend(numbers(&trips, "timer_late_ms"));
    }
    Ok(())
}

/// How late each situation is noticed.
pub(super) async fn gaps(bench: &Bench, peers: &mut [Peer], found: &mut [Found]) -> anyhow::Result<()> {
    for round in 1..=bench.pick(1, 2) {
        // One round shows that a peer misses a wake; waiting for the end of its poll again shows
        // nothing more.
        let patience = if round == 1 { bench.pick(1_000, 32_000) } else { 2_000 };
        progress(&format!("recovery gaps on all at once, since they mostly sleep, round {round}"));
        let order = json!({ "do": "gaps", "patience_ms": patience });
        let answers = try_join_all(peers.iter_mut().map(|peer| peer.ask(order.clone()))).await?;
        for (late, found) in answers.iter().zip(found.iter_mut()) {
            for (name, late) in late.as_object().into_iter().flatten() {
                let worst = found.gaps.entry(name.clone()).or_default();
                *worst = late.as_f64().unwrap_or(f64::NAN).max(*worst);
            }
        }
    }
    Ok(())
}

/// The built-in stress test; `url` is a database to find its ceilings in.
pub(super) async fn stress(bench: &Bench, url: &str, peers: &mut [Peer], found: &mut [Found]) -> anyhow::Result<()> {
    for (slots, delay, rounds) in loads(bench) {
        if delay > 0 {
            let ceiling = peers[0].ask(json!({ "do": "ceiling", "slots": slots, "delay_ms": delay })).await?;
            let durable = ceiling::of_commits(url, slots, delay).await?;
            found[0].ceilings.insert((slots, delay), (number(&ceiling, "per_s")?, durable));
        }
        for round in 1..=rounds {
            for (peer, found) in peers.iter_mut().zip(found.iter_mut()) {
                progress(&format!("stress {slots}:{slots}, activities of {delay} ms, on {}, round {round}", peer.name));
                let at_once = if slots >= 8 { 50 } else { 20 };
                let seconds = bench.pick(2, 5);
                let load = json!({
                    "do": "stress", "slots": slots, "at_once": at_once, "seconds": seconds, "delay_ms": delay,
                });
                let answer = peer.ask(load).await?;
                found.stress.entry((slots, delay)).or_default().push(number(&answer, "per_s")?);
                found.statements.entry((slots, delay)).or_default().push(number(&answer, "statements_each")?);
                found.failed += number(&answer, "failed")?;
            }
        }
    }
    for (peer, found) in peers.iter_mut().zip(found.iter_mut()) {
        progress(&format!("large payloads on {}", peer.name));
        let answer = peer.ask(json!({ "do": "large", "seconds": bench.pick(1, 4) })).await?;
        found.large = (number(&answer, "per_s")?, number(&answer, "failed")?);
    }
    Ok(())
}

/// Slots of each kind, milliseconds of each activity, rounds.
fn loads(bench: &Bench) -> Vec<(u64, u64, usize)> {
    bench.pick(vec![(4, 10, 1), (8, 10, 1)], vec![(1, 10, 1), (2, 10, 1), (4, 10, 3), (8, 10, 3), (4, 0, 1), (8, 0, 1)])
}

async fn all(peers: &mut [Peer], command: &Value) -> anyhow::Result<()> {
    try_join_all(peers.iter_mut().map(|peer| peer.ask(command.clone()))).await?;
    Ok(())
}

async fn counts(peers: &mut [Peer]) -> anyhow::Result<Vec<f64>> {
    let answers = try_join_all(peers.iter_mut().map(|peer| peer.ask(order("count")))).await?;
    answers.iter().map(|answer| number(answer, "statements")).collect()
}
