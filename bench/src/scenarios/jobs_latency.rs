//! From the commit of a job to the start of its handler, at 200 jobs a second with idle slots,
//! beside the peers.
//!
//! Once enqueued by the process that works, once by another one: ours by a plain SQL statement, as
//! any language has it, the peers by their own clients. Both processes read the machine's clock.
//! Then each waits, with two processes of three queues, and PostgreSQL counts their statements.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use futures_util::future::try_join_all;
use reveille_testkit::scenario::{Plain, Report, progress, quantile};
use serde_json::json;
use tokio_postgres::Client;

use super::jobs::{NAMES, OURS, QUEUE, Settings, Team, VERSIONS};
use crate::bench::Bench;
use crate::cluster::Cluster;
use crate::measure::median;
use crate::peer::{build_peers, numbers};

const PER_S: u64 = 200;
const PROCESSES: usize = 2;
const QUEUES: [&str; 3] = ["one", "two", "three"];
/// A job that has not begun by then is not waited for, and counts as this late.
const PATIENCE: Duration = Duration::from_secs(6);

/// Which process enqueues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum From {
    Itself,
    Another,
}

/// Milliseconds, by the place of the queue among the names.
type Late = BTreeMap<(From, Settings, usize), Vec<f64>>;

pub(crate) async fn run(bench: &Bench) -> anyhow::Result<Report> {
    let peers = build_peers().await?;
    progress("starting PostgreSQL with pg_stat_statements");
    let cluster = Cluster::start_with(|options| {
        let counting = options.setting("shared_preload_libraries", "pg_stat_statements");
        let counting = counting.setting("pg_stat_statements.track_utility", "on");
        counting.setting("pg_stat_statements.max", "10000").setting("max_connections", "500")
    })?;
    let version = cluster.database().await?.server_version().to_string();
    let mut teams = teams(&cluster, &peers).await?;

    let idle = if bench.wants("idle") { idle(bench, &cluster, &mut teams).await? } else { Vec::new() };
    let mut late = Late::new();
    for round in 1..=bench.pick(1, 3) {
        for (from, settings) in
            [From::Itself, From::Another].into_iter().flat_map(|from| Settings::BOTH.map(|it| (from, it)))
        {
            for (place, team) in teams.iter_mut().enumerate() {
                let word = if from == From::Itself { "one process" } else { "another process" };
                if bench.wants(&format!("round {round}: latency from {word}, {}, {}", settings.word(), team.name)) {
                    let took = latency(team, from, settings, bench.pick(200, 1000)).await?;
                    late.entry((from, settings, place)).or_default().extend(took);
                }
            }
        }
    }
    let mut report = Report::new("jobs-latency", format!("PostgreSQL {version}, fsync on; {VERSIONS}"));
    add_to(&mut report, &late, &idle);
    Ok(report)
}

async fn teams(cluster: &Cluster, peers: &Path) -> anyhow::Result<Vec<Team>> {
    let mut teams = Vec::new();
    for name in NAMES {
        progress(&format!("installing {name}"));
        teams.push(Team::start(cluster, peers, name, PROCESSES).await?);
    }
    Ok(teams)
}

/// Statements per second and process of each, all of them waiting at the same time.
async fn idle(bench: &Bench, cluster: &Cluster, teams: &mut [Team]) -> anyhow::Result<Vec<f64>> {
    let mut counters = Vec::new();
    for team in teams.iter_mut() {
        counters.push(counter(&cluster.url_of(team.name)).await?);
        team.start_workers(Settings::Default, PROCESSES, &QUEUES, 1).await?;
    }
    // Start-up is over, and with it the first gauges.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let span = bench.pick(Duration::from_secs(24), Duration::from_secs(120));
    progress(&format!("{PROCESSES} processes of each wait for {} s", span.as_secs()));
    let before = try_join_all(counters.iter().map(|counter| statements(&counter.client))).await?;
    tokio::time::sleep(span).await;
    let after = try_join_all(counters.iter().map(|counter| statements(&counter.client))).await?;
    for team in teams {
        team.end().await?;
    }
    #[expect(clippy::cast_precision_loss, reason = "two")]
    let processes = PROCESSES as f64;
    Ok(before.iter().zip(after).map(|(before, after)| (after - before) / span.as_secs_f64() / processes).collect())
}

async fn counter(url: &str) -> anyhow::Result<Plain> {
    let plain = Plain::connect(url).await?;
    let made = plain.client.batch_execute("create extension pg_stat_statements").await;
    made.context("this PostgreSQL has no pg_stat_statements")?;
    Ok(plain)
}

/// Every statement of this database so far, but not those that count.
async fn statements(client: &Client) -> anyhow::Result<f64> {
    let counted = "select coalesce(sum(calls), 0)::float8 from pg_stat_statements s \
                   join pg_database d on d.oid = s.dbid \
                   where d.datname = current_database() and query not like '%pg_stat_statements%'";
    Ok(client.query_one(counted, &[]).await?.get(0))
}

/// How late `count` handlers began, in milliseconds after the commit returned.
async fn latency(team: &mut Team, from: From, settings: Settings, count: u64) -> anyhow::Result<Vec<f64>> {
    team.clear().await?;
    team.start_workers(settings, 1, &[QUEUE], count).await?;
    // Slots are asleep when it begins.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let way = if team.name == OURS && from == From::Another { "sql" } else { "one" };
    let first = team.number(count);
    let order =
        json!({ "do": "enqueue_steadily", "queue": QUEUE, "way": way, "from": first, "count": count, "per_s": PER_S });
    let enqueuer = if from == From::Itself { &mut team.workers[0] } else { &mut team.producer };
    let committed = numbers(&enqueuer.ask(order).await?, "committed");
    let end = tokio::time::Instant::now() + PATIENCE;
    while team.ran().await? < count && tokio::time::Instant::now() < end {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let began = team.workers[0].ask(json!({ "do": "began", "from": 0, "count": count })).await?;
    let account = team.end().await?;
    if account.lost + account.twice > 0 {
        progress(&format!("{}: {} jobs lost, {} run twice", team.name, account.lost, account.twice));
    }
    anyhow::ensure!(team.name != OURS || account.lost + account.twice == 0, "the books do not add up: {account:?}");
    let late = |(committed, began): (&f64, &f64)| match *began {
        0.0 => PATIENCE.as_secs_f64() * 1000.0,
        began => (began - committed).max(0.0) / 1000.0,
    };
    Ok(committed.iter().zip(&numbers(&began, "began")).map(late).collect())
}

fn add_to(report: &mut Report, late: &Late, idle: &[f64]) {
    let worst = |q: f64| {
        let both = [From::Itself, From::Another].into_iter().filter_map(|from| late.get(&(from, Settings::Default, 0)));
        both.map(|took| quantile(took, q)).fold(f64::NAN, f64::max)
    };
    report.figure("p50_ms", worst(0.5), "ms");
    report.figure("p99_ms", worst(0.99), "ms");
    let peers = late.iter().filter(|((_, _, place), _)| *place > 0);
    report.figure("best_peer_p50_ms", peers.map(|(_, took)| median(took)).fold(f64::NAN, f64::min), "ms");
    for ((from, settings, place), took) in late {
        let from = match (from, place) {
            (From::Itself, _) => "by the same process",
            (From::Another, 0) => "by another process in SQL",
            (From::Another, _) => "by another process",
        };
        for (name, q) in [("p50", 0.5), ("p99", 0.99)] {
            let what = format!("enqueued {from}, {} settings, {name}: {}", settings.word(), NAMES[*place]);
            report.row(what, quantile(took, q), "ms");
        }
    }
    for (place, rate) in idle.iter().enumerate() {
        match place {
            0 => report.figure("idle_statements_per_s", *rate, "per s"),
            _ => report.row(format!("idle, each of 2 processes with 3 queues: {}", NAMES[place]), *rate, "per s"),
        }
    }
}
