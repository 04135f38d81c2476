//! Ten thousand long polls on one server.
//!
//! The server is a process of its own, the polls come from this one. All of them wait for the same
//! queue, which is the worst case for a herd, time out and come back. Then single pushes, each of
//! which must answer one of them; then as many pushes as there are polls, each of which leaves with
//! its answer.

mod crowd;

use std::collections::HashSet;
use std::time::{Duration, Instant};

use anyhow::Context;
use futures_util::future::try_join_all;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use reveille_testkit::scenario::process::{peak_mb, resident_mb};
use reveille_testkit::scenario::wire::Wire;
use reveille_testkit::scenario::{Plain, Report, progress, quantile};
use serde_json::json;
use tokio::time::timeout;
use tokio_postgres::Client;

use crate::bench::Bench;
use crate::popped::ack;
use crate::server::Serving;
use crate::statements::{count, counting_cluster, make_countable};
use crowd::{Answer, Crowd, Taken};

const WAITERS: usize = 10_000;
const QUEUE: &str = "herd";
const PUSHERS: usize = 50;
/// For the answers to all pushes; beyond it they count as lost.
const ALL_ANSWERED: Duration = Duration::from_secs(30);
/// For a second answer to one push to show itself.
const AFTERMATH: Duration = Duration::from_millis(500);

pub(crate) async fn run(bench: &Bench) -> anyhow::Result<Report> {
    make_room()?;
    let cluster = counting_cluster()?;
    let plain = Plain::connect(&cluster.url()).await?;
    make_countable(&plain.client).await?;
    let serving = Serving::start(&cluster.url()).await?;
    let version: String = plain.client.query_one("show server_version", &[]).await?.get(0);
    let wait = bench.pick(Duration::from_secs(10), Duration::from_secs(30));
    let mut report = Report::new(
        "longpolls",
        format!(
            "PostgreSQL {version}, fsync on; all polls on one queue, each gives up after {} s and comes back",
            wait.as_secs()
        ),
    );

    let queue = json!({ "queue": QUEUE }).to_string();
    serving.connect().await?.post("/api/v1/configure", &queue).await?.expect(200)?;
    progress(&format!("parking {WAITERS} long polls"));
    let mut crowd = Crowd::gather(serving.address, WAITERS, wait, QUEUE).await?;
    until_parked(&serving).await?;
    report.figure("waiters", number(WAITERS), "");
    let late = idle(bench, &serving, &plain.client, &mut crowd, &mut report).await?;
    single_pushes(bench.pick(50, 200), &serving, &mut crowd, &mut report).await?;
    one_push_each(&serving, &mut crowd, &mut report).await?;
    report.figure("deadline_late_p99_ms", quantile(&late, 0.99), "ms");
    report.row("deadlines: the latest", quantile(&late, 1.0), "ms");
    report.row("deadlines: the earliest", quantile(&late, 0.0), "ms");
    report.row("deadlines measured", number(late.len()), "");
    report.figure("rss_mb", peak_mb(serving.pid)?, "MB");
    Ok(report)
}

/// The polls wait, time out and come back; how late each was answered, in milliseconds.
async fn idle(
    bench: &Bench,
    serving: &Serving,
    admin: &Client,
    crowd: &mut Crowd,
    report: &mut Report,
) -> anyhow::Result<Vec<f64>> {
    let span = bench.pick(Duration::from_secs(24), Duration::from_secs(72));
    progress(&format!("waiting for {} s", span.as_secs()));
    let (before, began) = (count(admin).await?, Instant::now());
    let mut late = Vec::new();
    while let Ok(answer) = timeout(span.saturating_sub(began.elapsed()), crowd.next()).await {
        match answer? {
            Answer::Nothing { late_ms } => late.push(late_ms),
            Answer::Message(taken) => anyhow::bail!("a poll got {taken:?} though nothing was pushed"),
        }
    }
    let statements = count(admin).await? - before;
    report.row("resident while all wait", resident_mb(serving.pid)?, "MB");
    report.figure("statements_per_s", statements / began.elapsed().as_secs_f64(), "per s");
    Ok(late)
}

/// One push, one answer, and the next.
async fn single_pushes(pushes: usize, serving: &Serving, crowd: &mut Crowd, report: &mut Report) -> anyhow::Result<()> {
    progress(&format!("{pushes} pushes, one after the other"));
    let mut wire = serving.connect().await?;
    let rounds = serving.claim_rounds().await?;
    let (mut taken, mut took) = (Vec::new(), Vec::new());
    for n in 0..pushes {
        let began = Instant::now();
        push(&mut wire, &format!("single-{n}")).await?;
        let answer = timeout(ALL_ANSWERED, crowd.next_message()).await.context("a push that answered no poll")??;
        took.push(began.elapsed().as_secs_f64() * 1000.0);
        taken.push(answer);
    }
    while let Ok(more) = timeout(AFTERMATH, crowd.next_message()).await {
        taken.push(more?);
    }
    anyhow::ensure!(taken.len() == pushes, "{pushes} pushes gave {} answers", taken.len());
    report.figure("looks_per_push", (serving.claim_rounds().await? - rounds) / number(pushes), "rounds");
    report.row("a push to its answer among all, p50", quantile(&took, 0.5), "ms");
    report.row("a push to its answer among all, p99", quantile(&took, 0.99), "ms");
    // Only now: an ack frees a partition, which costs a claim round of its own.
    ack_all(&mut wire, taken).await
}

/// As many pushes as there are polls, as fast as they go; a poll that got a message leaves.
async fn one_push_each(serving: &Serving, crowd: &mut Crowd, report: &mut Report) -> anyhow::Result<()> {
    progress(&format!("{WAITERS} pushes"));
    until_parked(serving).await?;
    crowd.leave_when_answered();
    let rounds = serving.claim_rounds().await?;
    let began = Instant::now();
    let ((), mut taken) = tokio::try_join!(push_all(serving), take_all(crowd))?;
    report.row(format!("{WAITERS} pushes until all are answered"), began.elapsed().as_secs_f64(), "s");
    while let Ok(Ok(more)) = timeout(AFTERMATH, crowd.next_message()).await {
        taken.push(more);
    }
    report.row("claim rounds for all of them", serving.claim_rounds().await? - rounds, "rounds");
    let distinct: HashSet<&str> = taken.iter().map(|taken| taken.transaction_id.as_str()).collect();
    report.figure("lost", number(WAITERS - distinct.len()), "");
    report.figure("duplicated", number(taken.len() - distinct.len()), "");
    ack_all(&mut serving.connect().await?, taken).await
}

async fn push_all(serving: &Serving) -> anyhow::Result<()> {
    let pushers = (0..PUSHERS).map(|pusher| async move {
        let mut wire = serving.connect().await?;
        for n in (pusher..WAITERS).step_by(PUSHERS) {
            push(&mut wire, &format!("all-{n}")).await?;
        }
        anyhow::Ok(())
    });
    try_join_all(pushers).await.map(drop)
}

async fn take_all(crowd: &mut Crowd) -> anyhow::Result<Vec<Taken>> {
    let mut taken = Vec::with_capacity(WAITERS);
    let all = async {
        while taken.len() < WAITERS {
            taken.push(crowd.next_message().await?);
        }
        anyhow::Ok(())
    };
    match timeout(ALL_ANSWERED, all).await {
        Ok(ended) => ended?,
        Err(_) => progress("not all were answered in time"),
    }
    Ok(taken)
}

/// Each into a partition of its own: a leased one would keep the next message back.
async fn push(wire: &mut Wire, id: &str) -> anyhow::Result<()> {
    let item = json!({ "queue": QUEUE, "partition": id, "transactionId": id, "payload": { "n": id } });
    wire.post("/api/v1/push", &json!({ "items": [item] }).to_string()).await?.expect(201).map(drop)
}

async fn ack_all(wire: &mut Wire, taken: Vec<Taken>) -> anyhow::Result<()> {
    let acks: Vec<String> = taken.into_iter().map(|taken| taken.acknowledgement).collect();
    for some in acks.chunks(1000) {
        ack(wire, some).await?;
    }
    Ok(())
}

async fn until_parked(serving: &Serving) -> anyhow::Result<()> {
    let end = Instant::now() + ALL_ANSWERED;
    loop {
        let parked = serving.status().await?["registry"]["parked"].as_u64().unwrap_or_default();
        if parked == WAITERS as u64 {
            return Ok(());
        }
        anyhow::ensure!(Instant::now() < end, "only {parked} of {WAITERS} polls are parked");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Room for a socket for each poll.
fn make_room() -> anyhow::Result<()> {
    let needed = WAITERS as u64 + 500;
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    anyhow::ensure!(hard >= needed, "this system allows a process {hard} open files; {needed} are needed");
    if soft < needed {
        setrlimit(Resource::RLIMIT_NOFILE, needed, hard)?;
    }
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "a few thousand")]
fn number(count: usize) -> f64 {
    count as f64
}
