//! From a commit on one node to a claimed row on another.
//!
//! Two nodes, each with its own connections to one server, and a waiter parked on the second; in
//! the same run the bare NOTIFY between two connections, which is the least possible, and a wake-up
//! within one process. Then four nodes with 64 waiters, to count what one push costs.

use std::time::{Duration, Instant};

use anyhow::Context;
use futures_util::future::join_all;
use reveille_testkit::plain_queue::{self, Node, NodeOptions};
use reveille_testkit::scenario::{Plain, Report, progress, quantile};
use reveille_wake::{Cause, Hub, HubOptions, Waited};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::bench::Bench;
use crate::cluster::Cluster;
use crate::measure::median;
use crate::notify;

const NODES: usize = 4;
const WAITERS: usize = 16;
/// Below the rate at which hints are coalesced, as on a system that is not busy: on a busy one no
/// waiter depends on a hint.
const BETWEEN_PUSHES: Duration = Duration::from_millis(10);

pub(crate) async fn run(bench: &Bench) -> anyhow::Result<Report> {
    progress("starting a durable PostgreSQL");
    let cluster = Cluster::start()?;
    let database = cluster.database().await?;
    let plain = Plain::connect(&cluster.url()).await?;
    let admin = &plain.client;
    plain_queue::create(admin).await;
    let start = || Node::start(NodeOptions::new(cluster.url()));
    let nodes: Vec<Node> = join_all((0..NODES).map(|_| start())).await;

    let (mut took, mut bare) = (Vec::new(), Vec::new());
    for round in 1..=bench.rounds() {
        progress(&format!("round {round} of {}: commit to claim, and the bare NOTIFY", bench.rounds()));
        took.extend(commit_to_claim(&nodes[..2], bench.pick(200, 500)).await);
        // Work that is done leaves the queue; these rows would stay, leased for an hour, in the way
        // of every claim round.
        admin.batch_execute("truncate todo").await?;
        bare.push(notify::round_trips(&cluster.url(), bench.span()).await?.p50_ms);
    }
    progress("wake-ups within one process");
    let local = wakes_within_the_process(bench.pick(5_000, 50_000)).await?;
    progress(&format!("one push to {} waiters on {NODES} nodes", NODES * WAITERS));
    let rounds = rounds_per_push(&nodes, bench.pick(100, 200)).await;

    let mut report = Report::new("wake-latency", format!("PostgreSQL {}, fsync on", database.server_version()));
    report.figure("p50_ms", median(&took), "ms");
    report.figure("p99_ms", quantile(&took, 0.99), "ms");
    report.figure("notify_p50_ms", median(&bare), "ms");
    report.row("commit to claim, in bare NOTIFYs", median(&took) / median(&bare), "times");
    report.figure("same_process_p50_us", median(&local), "µs");
    report.row("wake-up to running waiter, p99", quantile(&local, 0.99), "µs");
    report.figure("looks_per_push", rounds, "per node");
    report.row("missed wakes", missed(&nodes), "");
    for node in nodes {
        node.close().await;
    }
    Ok(report)
}

/// Milliseconds from the return of the commit on the first node to the lease in the hands of a
/// waiter on the second.
async fn commit_to_claim(nodes: &[Node], count: usize) -> Vec<f64> {
    let [pusher, taker] = nodes else { return Vec::new() };
    let mut took = Vec::with_capacity(count);
    for _ in 0..count {
        let rounds = taker.counters.all_rounds();
        let waiting = taker.take("latency");
        tokio::pin!(waiting);
        // Parked: it has claimed once if it had to, and sleeps.
        let parked = tokio::time::timeout(BETWEEN_PUSHES, &mut waiting).await;
        debug_assert!(parked.is_err() && taker.counters.all_rounds() >= rounds);
        pusher.push("latency", 1).await;
        let committed = Instant::now();
        waiting.await;
        took.push(committed.elapsed().as_secs_f64() * 1000.0);
    }
    took
}

/// Microseconds from a wake-up to the waiter running, on another task.
async fn wakes_within_the_process(count: usize) -> anyhow::Result<Vec<f64>> {
    let (hub, runner) = Hub::new(HubOptions::default());
    let mut tasks = JoinSet::new();
    tasks.spawn(runner.run(std::future::pending()));
    let mut took = Vec::with_capacity(count);
    for _ in 0..count {
        let mut armed = hub.arm(0_u8).map_err(|refused| anyhow::anyhow!("{refused:?}"))?;
        armed.claim().found(reveille_wake::Outcome::Empty);
        let (sender, woken) = oneshot::channel();
        tasks.spawn(async move {
            let waited = armed.wait(Instant::now() + Duration::from_secs(10)).await;
            let _ = sender.send((Instant::now(), matches!(waited, Waited::TimedOut)));
        });
        tokio::task::yield_now().await;
        let woke_at = Instant::now();
        hub.wake(&0, Cause::Pushed);
        let (at, timed_out) = woken.await.context("the waiter is gone")?;
        anyhow::ensure!(!timed_out, "a wake-up was lost");
        took.push(at.saturating_duration_since(woke_at).as_secs_f64() * 1e6);
    }
    Ok(took)
}

async fn rounds_per_push(nodes: &[Node], pushes: usize) -> f64 {
    let mut waiting: Vec<_> = nodes.iter().flat_map(|node| (0..WAITERS).map(|_| node.ask("herd"))).collect();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let rounds = || nodes.iter().map(|node| node.counters.all_rounds()).sum::<u64>();
    let before = rounds();
    for _ in 0..pushes {
        nodes[0].push("herd", 1).await;
        let (_, taker, rest) = futures_util::future::select_all(waiting).await;
        waiting = rest;
        waiting.push(nodes[taker % nodes.len()].ask("herd"));
        // The other nodes claim in vain meanwhile.
        tokio::time::sleep(2 * BETWEEN_PUSHES).await;
    }
    #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
    let per_node = (rounds() - before) as f64 / (pushes * nodes.len()) as f64;
    per_node
}

fn missed(nodes: &[Node]) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a handful, if any")]
    let missed = nodes.iter().map(|node| node.counters.missed()).sum::<u64>() as f64;
    missed
}
