//! What one server does over HTTP, and what it costs.
//!
//! Server, PostgreSQL and the load share one machine, as separate processes. Every push is durable
//! before it is answered and brings a transaction id, as official clients' do; pops with leases ack
//! every message by name. Beside it, in the same rounds ([`beside`]), [`single`]: servers that run
//! one statement for each request.

mod beside;
mod load;
pub(crate) mod single;

use std::time::Duration;

use reveille_testkit::scenario::process::{self, Processes};
use reveille_testkit::scenario::{Plain, Report, progress};
use tokio_postgres::Client;

use crate::bench::Bench;
use crate::cluster::Cluster;
use crate::server::Serving;
use load::{Load, Measured, Queue, Step};

/// How many clients there are for a batch of each size.
const PUSHERS: [(usize, usize); 3] = [(1, 200), (10, 64), (100, 16)];
const CONSUMERS: [(usize, usize); 3] = [(100, 16), (10, 32), (1, 64)];
/// What the figures are for.
const USUAL_PARTITIONS: usize = 100;

pub(crate) async fn run(bench: &Bench) -> anyhow::Result<Report> {
    let mut report = Report::new("http", String::new());
    if bench.wants("beside one statement a request") {
        // On a cluster of its own: no older rows are in the way, and the rows of the peers are gone
        // before the next part.
        let site = Site::open().await?;
        beside::run(&site.field(bench), &site, &mut report).await?;
    }
    let site = Site::open().await?;
    report.versions(format!("PostgreSQL {}, fsync on; {}", site.version().await?, single::ABOUT));
    let field = site.field(bench);
    let mut usual = None;
    for partitions in [1, USUAL_PARTITIONS, 10_000] {
        if !bench.wants(&format!("{partitions} partitions")) {
            continue;
        }
        let costs = field.partitions(partitions, &mut report).await?;
        if partitions == USUAL_PARTITIONS {
            usual = Some(costs);
        }
    }
    if let Some([push, take]) = usual {
        report.figure("server_us_per_msg", push.server_us + take.server_us, "µs");
        report.figure("postgres_us_per_msg", push.postgres_us + take.postgres_us, "µs");
    }
    Ok(report)
}

/// A new PostgreSQL with a server on it; both end with this value.
struct Site {
    serving: Serving,
    admin: Plain,
    postgres: Processes,
    cluster: Cluster,
}

impl Site {
    async fn open() -> anyhow::Result<Self> {
        progress("starting a durable PostgreSQL");
        let cluster = Cluster::start_with(|options| {
            options.setting("shared_buffers", "1GB").setting("max_wal_size", "8GB").setting("max_connections", "400")
        })?;
        let admin = Plain::connect(&cluster.url()).await?;
        let serving = Serving::start(&cluster.url()).await?;
        let postgres = postmaster(&admin.client).await?;
        Ok(Self { serving, admin, postgres, cluster })
    }

    fn field<'s>(&'s self, bench: &'s Bench) -> Field<'s> {
        Field { bench, serving: &self.serving, postgres: self.postgres }
    }

    async fn version(&self) -> anyhow::Result<String> {
        Ok(self.admin.client.query_one("show server_version", &[]).await?.get(0))
    }
}

/// The processes below the postmaster.
async fn postmaster(admin: &Client) -> anyhow::Result<Processes> {
    let backend: i32 = admin.query_one("select pg_backend_pid()", &[]).await?.get(0);
    Ok(Processes::Family(process::parent(u32::try_from(backend)?)?))
}

/// What is measured on what.
struct Field<'b> {
    bench: &'b Bench,
    serving: &'b Serving,
    postgres: Processes,
}

impl Field<'_> {
    /// Everything on queues of so many partitions; the costs of a push and of pop and ack in
    /// batches of 100.
    async fn partitions(&self, partitions: usize, report: &mut Report) -> anyhow::Result<[Measured; 2]> {
        let queue = Queue::new(&format!("p{partitions}"), partitions);
        Load::new(self.serving, queue.clone(), 1).await?.make_partitions().await?;
        let mut costs = [Measured::default(); 2];
        for (batch, clients) in PUSHERS {
            let did = self.cell(&queue, clients, Step::Push { batch }, report).await?;
            match (batch, partitions) {
                (1, USUAL_PARTITIONS) => report.figure("push_batch1_per_s", did.per_s, "msg/s"),
                (100, USUAL_PARTITIONS) => report.figure("push_batch100_per_s", did.per_s, "msg/s"),
                _ => {}
            }
            costs[0] = did;
        }
        let (batch, clients) = CONSUMERS[0];
        self.fill(&queue, batch).await?;
        self.cell(&queue, clients, Step::TakeAcked { batch }, report).await?;
        for (batch, clients) in CONSUMERS {
            self.fill(&queue, batch).await?;
            let did = self.cell(&queue, clients, Step::TakeAndAck { batch }, report).await?;
            if batch == 100 {
                costs[1] = did;
            }
            if (batch, partitions) == (100, USUAL_PARTITIONS) {
                report.figure("pop_ack_batch100_per_s", did.per_s, "msg/s");
            }
        }
        Ok(costs)
    }

    /// As much as the pops that follow can take.
    async fn fill(&self, queue: &Queue, batch: usize) -> anyhow::Result<()> {
        let filler = Load::new(self.serving, queue.clone(), 8).await?;
        let enough = if batch == 1 { self.bench.pick(10_000, 40_000) } else { self.bench.pick(40_000, 200_000) };
        while queue.backlog() < enough {
            filler.run(Duration::from_millis(200), Step::Push { batch: 1000 }).await?;
        }
        Ok(())
    }

    async fn cell(&self, queue: &Queue, clients: usize, step: Step, report: &mut Report) -> anyhow::Result<Measured> {
        let what = format!("{step}, {} partitions", queue.partitions);
        progress(&what);
        let load = Load::new(self.serving, queue.clone(), clients).await?;
        load.warm_up(step).await?;
        let server = Processes::One(self.serving.pid);
        let before = (server.cpu_s()?, self.postgres.cpu_s()?);
        let mut did = load.run(self.bench.pick(Duration::from_millis(400), Duration::from_secs(3)), step).await?;
        did.server_us = (server.cpu_s()? - before.0) * 1e6 / did.messages;
        did.postgres_us = (self.postgres.cpu_s()? - before.1) * 1e6 / did.messages;
        report.row(format!("{what}, {clients} clients"), did.per_s, "msg/s");
        report.row(format!("{what}: a request, p50"), did.p50_ms, "ms");
        report.row(format!("{what}: a request, p99"), did.p99_ms, "ms");
        report.row(format!("{what}: server's processor time"), did.server_us, "µs/msg");
        report.row(format!("{what}: PostgreSQL's processor time"), did.postgres_us, "µs/msg");
        Ok(did)
    }
}
