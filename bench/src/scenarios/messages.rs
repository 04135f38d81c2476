//! Our queues beside pgmq and beside a table with a state column, in one run on one durable
//! cluster.
//!
//! Rounds alternate between the three, so that a noisy minute hits all of them; figures are medians
//! of the rounds' own ratios. Ours runs with transaction ids and deduplication, as official clients
//! use it; a second column is without.

mod contender;
mod growth;

use std::time::{Duration, Instant};

use anyhow::Context;
use reveille::database::Database;
use reveille::messages::{Messages, MessagesOptions};
use reveille_testkit::scenario::{Plain, Report, progress};
use tokio::process::Command;

use crate::bench::Bench;
use crate::cluster::Cluster;
use crate::measure::{counted_up_to, median, ratio};
use crate::peer::build_peers;
use contender::{Contender, Ours, PGMQ_QUEUE, Pool, ROW_TABLE};

/// How many callers there are: with one message each, and with batches.
const CALLERS_OF_ONE: usize = 64;
const CALLERS: usize = 32;
/// So few that every round trip is felt.
const FEW_CALLERS: usize = 8;
/// Connections of a peer. More do not help it on two cores.
const CONNECTIONS: usize = 8;
const PARTITIONS: usize = 100;
const BYTES: usize = 100;

pub(crate) async fn run(bench: &Bench) -> anyhow::Result<Report> {
    let peers = build_peers().await?;
    progress("starting a durable PostgreSQL");
    let cluster = Cluster::start_with(|options| {
        options.setting("shared_buffers", "1GB").setting("max_wal_size", "8GB").setting("autovacuum_naptime", "5s")
    })?;
    let database = cluster.database().await?;
    let version = install_pgmq(&cluster, &peers).await?;
    let admin = Plain::connect(&cluster.url()).await?;
    admin.client.batch_execute(ROW_TABLE).await?;
    let mut report = Report::new(
        "messages",
        format!(
            "PostgreSQL {}, fsync on; pgmq {version}; {BYTES} B and {PARTITIONS} partitions unless said",
            database.server_version()
        ),
    );
    let messages = Messages::new(&database, MessagesOptions::default());
    let field = Field { bench, cluster: &cluster, database: &database, messages: &messages };
    field.pushes(&mut report).await?;
    field.consumption(&mut report).await?;
    field.end_to_end(&mut report).await?;
    growth::measure(&field, &mut report).await?;
    messages.close().await;
    database.close().await;
    Ok(report)
}

/// What is measured on what.
struct Field<'b> {
    bench: &'b Bench,
    cluster: &'b Cluster,
    database: &'b Database,
    messages: &'b Messages,
}

impl Field<'_> {
    async fn contenders(&self, queue: &str, bytes: usize) -> anyhow::Result<[Contender; 4]> {
        let ours = |suffix| Ours::new(self.messages, &format!("{queue}-{suffix}"), PARTITIONS, bytes);
        Ok([
            Contender::Ours(ours("keyed")?),
            Contender::Ours(ours("plain")?.without_keys()),
            Contender::Pgmq(Pool::new(self.database, CONNECTIONS, bytes).await?),
            Contender::Rows(Pool::new(self.database, CONNECTIONS, bytes).await?),
        ])
    }

    async fn pushes(&self, report: &mut Report) -> anyhow::Result<()> {
        for (batch, bytes) in [(1, BYTES), (10, BYTES), (100, BYTES), (1000, BYTES), (100, 1024)] {
            if !self.bench.wants(&format!("push, batch {batch}, {bytes} B")) {
                continue;
            }
            let contenders = self.contenders(&format!("push-{batch}-{bytes}"), bytes).await?;
            let rates = self.rounds(&contenders, batch, Step::Push).await?;
            let what = format!("push, batch {batch}, {bytes} B");
            if (batch, bytes) == (100, BYTES) {
                report.figure("push_batch100_per_s", median(&rates[0]), "msg/s");
            }
            rows(report, &what, &rates);
            self.empty_peers().await?;
        }
        for partitions in [1, 10_000] {
            if !self.bench.wants(&format!("push, batch 100, {partitions} partitions")) {
                continue;
            }
            let ours = [Contender::Ours(Ours::new(self.messages, &format!("push-p{partitions}"), partitions, BYTES)?)];
            let rates = self.rounds(&ours, 100, Step::Push).await?;
            report.row(format!("push, batch 100, {partitions} partitions"), median(&rates[0]), "msg/s");
        }
        Ok(())
    }

    async fn consumption(&self, report: &mut Report) -> anyhow::Result<()> {
        for batch in [1, 10, 100] {
            if !self.bench.wants(&format!("pop and ack, batch {batch}")) {
                continue;
            }
            let contenders = self.contenders(&format!("pop-{batch}"), BYTES).await?;
            let rates = self.rounds(&contenders, batch, Step::Take).await?;
            rows(report, &format!("pop and ack, batch {batch}"), &rates);
            self.empty_peers().await?;
        }
        Ok(())
    }

    async fn end_to_end(&self, report: &mut Report) -> anyhow::Result<()> {
        for (batch, callers, bytes) in [
            (1, CALLERS_OF_ONE, BYTES),
            (10, FEW_CALLERS, BYTES),
            (10, CALLERS, BYTES),
            (100, FEW_CALLERS, BYTES),
            (100, CALLERS, BYTES),
            (100, CALLERS, 1024),
        ] {
            let size = if bytes == BYTES { String::new() } else { format!(", {bytes} B") };
            let what = format!("end to end, batch {batch}, {callers} callers{size}");
            if !self.bench.wants(&what) {
                continue;
            }
            let contenders = self.contenders(&format!("e2e-{batch}-{callers}-{bytes}"), bytes).await?;
            let rates = self.rounds_of(&contenders, callers, batch, Step::Whole).await?;
            rows(report, &what, &rates);
            match (batch, callers, bytes) {
                (1, ..) => report.figure("e2e_batch1_vs_pgmq", ratio(&rates[0], &rates[2]), "times"),
                (100, CALLERS, BYTES) => report.figure("e2e_batch100_vs_pgmq", ratio(&rates[0], &rates[2]), "times"),
                _ => {}
            }
            self.empty_peers().await?;
        }
        for partitions in [1, 10_000] {
            let what = format!("end to end, batch 100, {CALLERS} callers, {partitions} partitions");
            if !self.bench.wants(&what) {
                continue;
            }
            let ours = [Contender::Ours(Ours::new(self.messages, &format!("e2e-p{partitions}"), partitions, BYTES)?)];
            let rates = self.rounds(&ours, 100, Step::Whole).await?;
            report.row(what, median(&rates[0]), "msg/s");
        }
        Ok(())
    }

    /// Messages per second of each contender in each round.
    async fn rounds(&self, contenders: &[Contender], batch: usize, step: Step) -> anyhow::Result<Vec<Vec<f64>>> {
        self.rounds_of(contenders, if batch == 1 { CALLERS_OF_ONE } else { CALLERS }, batch, step).await
    }

    async fn rounds_of(
        &self,
        contenders: &[Contender],
        callers: usize,
        batch: usize,
        step: Step,
    ) -> anyhow::Result<Vec<Vec<f64>>> {
        let mut rates = vec![Vec::new(); contenders.len()];
        for contender in contenders {
            self.fill(contender, batch, step).await?;
            step.run(contender, Duration::from_millis(200), callers, batch).await?;
        }
        for _ in 0..self.bench.rounds() {
            for (contender, rates) in contenders.iter().zip(&mut rates) {
                self.fill(contender, batch, step).await?;
                rates.push(step.run(contender, self.bench.span(), callers, batch).await?);
            }
        }
        Ok(rates)
    }

    /// More than callers that only take will take.
    async fn fill(&self, contender: &Contender, batch: usize, step: Step) -> anyhow::Result<()> {
        let missing = if let Step::Take = step { backlog(batch) } else { 0 };
        for _ in 0..missing / 1000 {
            contender.push(0, 1000).await?;
        }
        Ok(())
    }

    async fn empty_peers(&self) -> anyhow::Result<()> {
        let admin = Plain::connect(&self.cluster.url()).await?;
        let empty = format!("truncate bench_row; select pgmq.purge_queue('{PGMQ_QUEUE}'); checkpoint");
        Ok(admin.client.batch_execute(&empty).await?)
    }
}

/// What a caller does over and over.
#[derive(Debug, Clone, Copy)]
enum Step {
    Push,
    Take,
    Whole,
}

impl Step {
    /// Runs callers for a while; messages per second.
    async fn run(self, contender: &Contender, span: Duration, callers: usize, batch: usize) -> anyhow::Result<f64> {
        // What is filled in is not taken to its end: the last of it would be waited for.
        let most = if let Self::Take = self { backlog(batch) as u64 * 9 / 10 } else { u64::MAX };
        counted_up_to(most, span, callers, async |caller| {
            if !matches!(self, Self::Take) {
                contender.push(caller, batch).await?;
            }
            if matches!(self, Self::Push) {
                return Ok(batch);
            }
            let taken = contender.take(caller, batch).await?;
            contender.ack(caller, taken).await
        })
        .await
    }
}

/// How much is there for callers that only take, batch by batch.
fn backlog(batch: usize) -> usize {
    if batch == 1 { 20_000 } else { 100_000 }
}

fn rows(report: &mut Report, what: &str, rates: &[Vec<f64>]) {
    let names = ["ours", "ours without transaction ids", "pgmq", "state column"];
    for (name, rates) in names.iter().zip(rates) {
        report.row(format!("{what}: {name}"), median(rates), "msg/s");
    }
}

async fn install_pgmq(cluster: &Cluster, peers: &std::path::Path) -> anyhow::Result<String> {
    let installed = Command::new(peers.with_file_name("pgmq-peer")).arg(cluster.url_of("postgres")).output().await?;
    anyhow::ensure!(installed.status.success(), "{}", String::from_utf8_lossy(&installed.stderr));
    let admin = Plain::connect(&cluster.url()).await?;
    admin.client.batch_execute(&format!("select pgmq.create('{PGMQ_QUEUE}')")).await.context("pgmq has no queue")?;
    Ok(String::from_utf8_lossy(&installed.stdout).trim().to_owned())
}

/// How long something took, in microseconds.
async fn timed<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<(T, f64)> {
    let began = Instant::now();
    let done = work.await?;
    Ok((done, began.elapsed().as_secs_f64() * 1e6))
}
