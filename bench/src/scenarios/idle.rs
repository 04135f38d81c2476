//! What a process that waits costs the database.
//!
//! One process with 16 dispatchers and 1,000 waited keys, whose waiters give up every 30 s and come
//! back, beside a worker that polls one queue every 50 ms. Every statement of either is counted by
//! PostgreSQL itself, utility ones too.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use reveille::database::Database;
use reveille_testkit::plain_queue::{self, Node, NodeOptions};
use reveille_testkit::scenario::{Plain, Report, progress};
use reveille_wake::Patience;

use crate::bench::Bench;
use crate::statements::{count, counting_cluster, make_countable};

const DISPATCHERS: usize = 16;
const KEYS: usize = 1000;
const WAIT: Duration = Duration::from_secs(30);
const POLL_EVERY: Duration = Duration::from_millis(50);

pub(crate) async fn run(bench: &Bench) -> anyhow::Result<Report> {
    let cluster = counting_cluster()?;
    let database = cluster.database().await?;
    let plain = Plain::connect(&cluster.url()).await?;
    let admin = &plain.client;
    make_countable(admin).await?;
    plain_queue::create(admin).await;

    let span = bench.pick(Duration::from_secs(60), Duration::from_secs(180));
    let nodes = start(&database, &cluster.url()).await;
    progress(&format!("{DISPATCHERS} dispatchers wait under {KEYS} keys for {} s", span.as_secs()));
    let before = count(admin).await?;
    wait(&nodes, span).await;
    let ours = (count(admin).await? - before) / span.as_secs_f64();

    let span = bench.pick(Duration::from_secs(5), Duration::from_secs(20));
    progress(&format!("a poller polls one queue for {} s", span.as_secs()));
    for node in nodes {
        node.close().await;
    }
    let before = count(admin).await?;
    poll(&cluster.url(), span).await?;
    let poller = (count(admin).await? - before) / span.as_secs_f64();

    let mut report = Report::new("idle", format!("PostgreSQL {}, fsync on", database.server_version()));
    report.figure("statements_per_s", ours, "per s");
    report.figure("poller_statements_per_s", poller, "per s");
    report.row("a poller of one queue sends this many times more", poller / ours, "times");
    Ok(report)
}

async fn start(database: &Database, url: &str) -> Vec<Node> {
    let options = NodeOptions::new(url);
    let nodes: Vec<Node> = (0..DISPATCHERS).map(|_| Node::on(database.clone(), &options)).collect();
    for node in &nodes {
        node.until_proven().await;
    }
    // One claim round for every key, before anything is counted.
    join_all(nodes.iter().flat_map(|node| tickets(node, Duration::from_secs(1)))).await;
    nodes
}

async fn wait(nodes: &[Node], span: Duration) {
    let end = Instant::now() + span;
    while Instant::now() < end {
        let left = WAIT.min(end.saturating_duration_since(Instant::now()));
        join_all(nodes.iter().flat_map(|node| tickets(node, left))).await;
    }
}

/// A waiter for each of this dispatcher's keys.
fn tickets(node: &Node, patience: Duration) -> impl Iterator<Item = impl Future> {
    let until = Patience::Until(Instant::now() + patience);
    (0..KEYS.div_ceil(DISPATCHERS))
        .filter_map(move |number| node.handle.request([format!("queue-{number}")], (), until).ok())
}

async fn poll(url: &str, span: Duration) -> anyhow::Result<()> {
    let plain = Plain::connect(url).await?;
    let client = &plain.client;
    let claim = client.prepare("select id from todo where queue = 'q' and due_at <= clock_timestamp() limit 1").await?;
    let end = Instant::now() + span;
    while Instant::now() < end {
        client.query(&claim, &[]).await?;
        tokio::time::sleep(POLL_EVERY).await;
    }
    Ok(())
}
