//! What PostgreSQL and our connections give, before any queue is built on them.
//!
//! Four pairs, each measured in alternating rounds on one durable cluster: one statement at a time
//! against 64 in flight on the same connection; commits alone and together; NOTIFY from one
//! connection to another; and 100 callers with one row each, a statement for each caller against
//! fused statements.

mod fused;

use reveille::database::{Connection, Database, Purpose, Statement};
use reveille_testkit::scenario::{Plain, Report, progress};
use tokio_postgres::types::Type;

use crate::bench::Bench;
use crate::cluster::Cluster;
use crate::measure::{median, rate, ratio};
use crate::notify;

const IN_FLIGHT: usize = 64;
const COMMITTERS: usize = 16;

static ECHO: Statement =
    Statement { name: "bench/echo", sql: "-- Returns its parameter.\nselect $1", types: &[Type::INT8] };

static INSERT: Statement = Statement {
    name: "bench/insert",
    sql: "-- One row, one commit.\ninsert into public.bench_ground (body) values ($1)",
    types: &[Type::INT8],
};

pub(crate) async fn run(bench: &Bench) -> anyhow::Result<Report> {
    progress("starting a durable PostgreSQL");
    let cluster = Cluster::start()?;
    let database = cluster.database().await?;
    let admin = Plain::connect(&cluster.url()).await?;
    admin
        .client
        .batch_execute("create table bench_ground (id bigint generated always as identity, body bigint)")
        .await?;
    let mut seen = Seen::default();
    for round in 1..=bench.rounds() {
        progress(&format!("round {round} of {}", bench.rounds()));
        seen.measure(bench, &database, &cluster.url()).await?;
        admin.client.batch_execute("truncate bench_ground; checkpoint").await?;
    }
    let report = seen.report(format!("PostgreSQL {}, fsync on", database.server_version()));
    database.close().await;
    Ok(report)
}

/// One list per measurement, one entry per round.
#[derive(Debug, Default)]
struct Seen {
    single: Vec<f64>,
    pipelined: Vec<f64>,
    commits_alone: Vec<f64>,
    commits: Vec<f64>,
    notify_p50: Vec<f64>,
    notify_p99: Vec<f64>,
    separate: Vec<f64>,
    fused: Vec<f64>,
}

impl Seen {
    async fn measure(&mut self, bench: &Bench, database: &Database, url: &str) -> anyhow::Result<()> {
        let span = bench.span();
        let connection = database.connection(Purpose::Dedicated("bench")).await?;
        let echo = async |_| connection.query(&ECHO, &[&1_i64]).await.map(drop).map_err(Into::into);
        self.single.push(rate(span, 1, echo).await?);
        self.pipelined.push(rate(span, IN_FLIGHT, echo).await?);

        let committers = connections(database, COMMITTERS).await?;
        let commit =
            async |worker: usize| committers[worker].execute(&INSERT, &[&1_i64]).await.map(drop).map_err(Into::into);
        self.commits_alone.push(rate(span, 1, commit).await?);
        self.commits.push(rate(span, COMMITTERS, commit).await?);

        let notify = notify::round_trips(url, span).await?;
        self.notify_p50.push(notify.p50_ms);
        self.notify_p99.push(notify.p99_ms);

        self.separate.push(fused::separate(span, &committers).await?);
        self.fused.push(fused::fused(span, &committers[..2]).await?);
        Ok(())
    }

    fn report(&self, versions: String) -> Report {
        let mut report = Report::new("ground", versions);
        report.row("statements, one at a time on one connection", median(&self.single), "per s");
        report.row(format!("statements, {IN_FLIGHT} in flight on one connection"), median(&self.pipelined), "per s");
        report.figure("pipelined_vs_single", ratio(&self.pipelined, &self.single), "times");
        report.row("commits on one connection", median(&self.commits_alone), "per s");
        report.row(format!("commits on {COMMITTERS} connections"), median(&self.commits), "per s");
        report.figure("commits_per_s", median(&self.commits), "per s");
        report.figure("notify_p50_ms", median(&self.notify_p50), "ms");
        report.row("NOTIFY to another connection, p99", median(&self.notify_p99), "ms");
        report.row("100 callers, a statement each, 16 connections", median(&self.separate), "rows/s");
        report.row("100 callers, fused, 2 connections", median(&self.fused), "rows/s");
        report.figure("fused_vs_separate", ratio(&self.fused, &self.separate), "times");
        report
    }
}

async fn connections(database: &Database, count: usize) -> anyhow::Result<Vec<Connection>> {
    let mut all = Vec::with_capacity(count);
    for _ in 0..count {
        all.push(database.connection(Purpose::Dedicated("bench")).await?);
    }
    Ok(all)
}
