//! Single pushes of 200 clients, to us and to servers without batches, in turns.

use std::time::Duration;

use reveille_testkit::scenario::process::Processes;
use reveille_testkit::scenario::{Report, progress};

use super::load::{Load, Queue, Step};
use super::single::{self, ServerKind};
use super::{Field, PUSHERS, Site, USUAL_PARTITIONS};
use crate::measure::{median, ratio};
use crate::server::Serving;

/// The servers beside ours; where everything goes to one partition, only the first.
const PEERS: [(ServerKind, &str); 3] = [
    (ServerKind::Axum, "a bare insert for each request"),
    (ServerKind::Bare, "that without an HTTP library"),
    (ServerKind::Unfused, "our own push, one statement for each request"),
];

/// One server, and what was measured of it.
struct Contender<'s> {
    name: &'static str,
    serving: &'s Serving,
    load: Load,
    rates: Vec<f64>,
    spent: Spent,
}

/// Processor time, and for how many messages.
#[derive(Debug, Default)]
struct Spent {
    clients_s: f64,
    server_s: f64,
    postgres_s: f64,
    messages: f64,
}

pub(super) async fn run(field: &Field<'_>, site: &Site, report: &mut Report) -> anyhow::Result<()> {
    single::make_table(&site.admin.client).await?;
    let mut peers = Vec::new();
    for (kind, name) in PEERS {
        peers.push((single::start(&site.cluster.url(), kind).await?, name));
    }
    let all = field.compare(USUAL_PARTITIONS, &peers, report).await?;
    report.figure("push_batch1_vs_single", ratio(&all[0].rates, &all[3].rates), "times");
    report.figure("push_batch1_vs_bare_insert", ratio(&all[0].rates, &all[1].rates), "times");
    let both = field.compare(1, &peers[..1], report).await?;
    report.row("`push_batch1_vs_bare_insert` with one partition", ratio(&both[0].rates, &both[1].rates), "times");
    Ok(())
}

impl Field<'_> {
    /// All servers in turns, round by round; ours comes first.
    async fn compare<'s>(
        &'s self,
        partitions: usize,
        peers: &'s [(Serving, &'static str)],
        report: &mut Report,
    ) -> anyhow::Result<Vec<Contender<'s>>> {
        let (batch, clients) = PUSHERS[0];
        let servers =
            std::iter::once((self.serving, "ours")).chain(peers.iter().map(|(serving, name)| (serving, *name)));
        let mut all = Vec::new();
        for (place, (serving, name)) in servers.enumerate() {
            let load =
                Load::new(serving, Queue::new(&format!("beside-{partitions}-{place}"), partitions), clients).await?;
            all.push(Contender { name, serving, load, rates: Vec::new(), spent: Spent::default() });
        }
        for one in &all {
            one.load.make_partitions().await?;
        }
        let span = self.bench.pick(Duration::from_millis(500), Duration::from_millis(1500));
        for one in &all {
            one.load.run(span, Step::Push { batch }).await?;
        }
        for round in 1..=self.bench.rounds() {
            progress(&format!(
                "round {round} of {}: beside one statement, {partitions} partitions",
                self.bench.rounds()
            ));
            for one in &mut all {
                self.measure(one, span).await?;
            }
        }
        for one in &all {
            one.add_to(report, partitions);
        }
        Ok(all)
    }

    async fn measure(&self, one: &mut Contender<'_>, span: Duration) -> anyhow::Result<()> {
        let (clients, server) = (Processes::One(std::process::id()), Processes::One(one.serving.pid));
        let read = || anyhow::Ok([clients.cpu_s()?, server.cpu_s()?, self.postgres.cpu_s()?]);
        let before = read()?;
        let did = one.load.run(span, Step::Push { batch: 1 }).await?;
        let after = read()?;
        one.rates.push(did.per_s);
        one.spent.clients_s += after[0] - before[0];
        one.spent.server_s += after[1] - before[1];
        one.spent.postgres_s += after[2] - before[2];
        one.spent.messages += did.messages;
        Ok(())
    }
}

impl Contender<'_> {
    fn add_to(&self, report: &mut Report, partitions: usize) {
        let what = format!("beside, {partitions} partitions: {}", self.name);
        let each = |seconds: f64| seconds * 1e6 / self.spent.messages;
        report.row(&what, median(&self.rates), "msg/s");
        report.row(format!("{what}: the clients"), each(self.spent.clients_s), "µs/msg");
        report.row(format!("{what}: the server"), each(self.spent.server_s), "µs/msg");
        report.row(format!("{what}: PostgreSQL"), each(self.spent.postgres_s), "µs/msg");
    }
}
