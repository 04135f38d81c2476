//! One bad client beside honest ones, on one server: what they feel of it.
//!
//! The server is a process of its own; the bad client and the honest one are in this process. Each
//! part measures how long something small takes while the bad client is at work, and nothing else
//! runs. On two cores part of it is the wait for a processor, which the bad client, the server and
//! PostgreSQL share.

use std::fmt::Write as _;
use std::pin::pin;
use std::time::{Duration, Instant};

use futures_util::future::{Either, select, try_join_all};
use reveille_testkit::scenario::process::resident_mb;
use reveille_testkit::scenario::wire::Wire;
use reveille_testkit::scenario::{Plain, Report, progress, quantile};
use tokio::time::sleep;

use crate::bench::Bench;
use crate::cluster::Cluster;
use crate::server::Serving;

/// Messages of a large push; the server's limit for one request.
const LARGE: usize = 100_000;
/// Partitions that a push creates.
const NEW_NAMES: usize = 45_000;
/// Queues that are polled and do not exist.
const POLLED_NAMES: usize = 100_000;
const POLLERS: usize = 16;
/// Between two probes: often enough to meet every pause, seldom enough to be no load.
const BETWEEN: Duration = Duration::from_millis(5);
/// What an allocator may take to give memory back.
const CALM: Duration = Duration::from_secs(25);

pub(crate) async fn run(bench: &Bench) -> anyhow::Result<Report> {
    progress("starting a durable PostgreSQL");
    let cluster = Cluster::start_with(|options| options.setting("shared_buffers", "1GB"))?;
    let plain = Plain::connect(&cluster.url()).await?;
    let version: String = plain.client.query_one("show server_version", &[]).await?.get(0);
    let serving = Serving::start(&cluster.url()).await?;
    let mut report = Report::new("hostile", format!("PostgreSQL {version}, fsync on"));
    // Connections, plans and the queue of the honest client are there before anything is measured.
    serving.connect().await?.post(PUSH, SMALL).await?.expect(201)?;

    quiet(&serving, &mut report).await?;
    large_pushes(bench, &serving, &mut report).await?;
    new_names(&serving, &mut report).await?;
    polled_names(bench, &serving, &mut report).await?;
    Ok(report)
}

const PUSH: &str = "/api/v1/push";
const SMALL: &str = r#"{"items":[{"queue":"honest","payload":1}]}"#;

/// The same probes without a bad client.
async fn quiet(serving: &Serving, report: &mut Report) -> anyhow::Result<()> {
    let calm = || async {
        sleep(Duration::from_secs(2)).await;
        anyhow::Ok(())
    };
    let probed = livez_beside(serving, calm()).await?;
    report.row("/livez when nothing else runs, longest", quantile(&probed, 1.0), "ms");
    let pushed = push_beside(serving, calm()).await?;
    report.row("a small push when nothing else runs, longest", quantile(&pushed, 1.0), "ms");
    Ok(())
}

async fn large_pushes(bench: &Bench, serving: &Serving, report: &mut Report) -> anyhow::Result<()> {
    let body = large_push();
    let push = || async { serving.connect().await?.post(PUSH, &body).await?.expect(201).map(drop) };
    push().await?;
    let before = resident_mb(serving.pid)?;
    let mut one = Vec::new();
    for round in 1..=bench.rounds() {
        progress(&format!("round {round}: /livez beside one push of {LARGE}"));
        one.extend(livez_beside(serving, push()).await?);
    }
    report.figure("livez_worst_ms", quantile(&one, 1.0), "ms");
    report.row(format!("/livez beside one push of {LARGE}, p50"), quantile(&one, 0.5), "ms");
    progress(&format!("/livez beside four pushes of {LARGE}"));
    let four = livez_beside(serving, async { try_join_all((0..4).map(|_| push())).await.map(drop) }).await?;
    report.row(format!("/livez beside four pushes of {LARGE} at once, p50"), quantile(&four, 0.5), "ms");
    report.row(format!("/livez beside four pushes of {LARGE} at once, longest"), quantile(&four, 1.0), "ms");
    report.row("resident after one large push", before, "MB");
    report.row("resident after the burst", resident_mb(serving.pid)?, "MB");
    progress(&format!("waiting for {} s", CALM.as_secs()));
    sleep(CALM).await;
    report.figure("resident_after_burst_mb", resident_mb(serving.pid)?, "MB");
    Ok(())
}

/// A push that creates partitions, beside small ones to a queue that exists.
async fn new_names(serving: &Serving, report: &mut Report) -> anyhow::Result<()> {
    progress(&format!("small pushes beside one that makes {NEW_NAMES} partitions"));
    let mut body = r#"{"items":["#.to_owned();
    for name in 0..NEW_NAMES {
        let _ = write!(body, r#"{}{{"queue":"wide","partition":"{name}","payload":1}}"#, comma(name));
    }
    body += "]}";
    let began = Instant::now();
    let bad = async { serving.connect().await?.post(PUSH, &body).await?.expect(201).map(drop) };
    let pushed = push_beside(serving, bad).await?;
    report.row(format!("a push that makes {NEW_NAMES} partitions"), began.elapsed().as_secs_f64(), "s");
    report.figure("new_names_push_worst_ms", quantile(&pushed, 1.0), "ms");
    report.row(format!("a small push beside {NEW_NAMES} new partitions, p50"), quantile(&pushed, 0.5), "ms");
    Ok(())
}

/// Polls of queues that do not exist, beside small pushes to one that does.
async fn polled_names(bench: &Bench, serving: &Serving, report: &mut Report) -> anyhow::Result<()> {
    let names = bench.pick(POLLED_NAMES / 5, POLLED_NAMES);
    progress(&format!("small pushes beside polls of {names} names"));
    let began = Instant::now();
    let pollers = (0..POLLERS).map(|poller| async move {
        let mut wire = serving.connect().await?;
        for name in (poller..names).step_by(POLLERS) {
            poll(&mut wire, name).await?;
        }
        anyhow::Ok(())
    });
    let pushed = push_beside(serving, async { try_join_all(pollers).await.map(drop) }).await?;
    report.row(format!("polls of {names} names"), began.elapsed().as_secs_f64(), "s");
    report.figure("polled_names_push_worst_ms", quantile(&pushed, 1.0), "ms");
    report.row(format!("a small push beside polls of {names} names, p50"), quantile(&pushed, 0.5), "ms");
    report.row(format!("a small push beside polls of {names} names, p99"), quantile(&pushed, 0.99), "ms");
    Ok(())
}

/// Waits for a millisecond, so that the name is waited for and then remembered.
async fn poll(wire: &mut Wire, name: usize) -> anyhow::Result<()> {
    wire.get(&format!("/api/v1/pop/queue/invented-{name}?wait=true&timeout=1")).await?.expect(204).map(drop)
}

fn large_push() -> String {
    let mut body = r#"{"items":["#.to_owned();
    for item in 0..LARGE {
        let _ = write!(body, r#"{}{{"queue":"bulk","payload":1}}"#, comma(item));
    }
    body + "]}"
}

fn comma(place: usize) -> &'static str {
    if place == 0 { "" } else { "," }
}

/// How long each answer of `/livez` took while the bad client was at work, in milliseconds.
async fn livez_beside(serving: &Serving, bad: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<Vec<f64>> {
    let mut wire = serving.connect().await?;
    beside(bad, async || wire.get("/livez").await?.expect(200).map(drop)).await
}

/// The same of pushes of one message.
async fn push_beside(serving: &Serving, bad: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<Vec<f64>> {
    let mut wire = serving.connect().await?;
    beside(bad, async || wire.post(PUSH, SMALL).await?.expect(201).map(drop)).await
}

/// Probes until the work is done; a probe that is under way then is finished and counts.
async fn beside(
    work: impl Future<Output = anyhow::Result<()>>,
    mut probe: impl AsyncFnMut() -> anyhow::Result<()>,
) -> anyhow::Result<Vec<f64>> {
    let mut took = Vec::new();
    let mut work = pin!(work);
    let mut is_done = false;
    while !is_done {
        let one = async {
            let began = Instant::now();
            probe().await?;
            let took_ms = began.elapsed().as_secs_f64() * 1000.0;
            sleep(BETWEEN).await;
            anyhow::Ok(took_ms)
        };
        match select(work.as_mut(), pin!(one)).await {
            Either::Left((done, one)) => {
                done?;
                is_done = true;
                took.push(one.await?);
            }
            Either::Right((probed, _)) => took.push(probed?),
        }
    }
    Ok(took)
}
