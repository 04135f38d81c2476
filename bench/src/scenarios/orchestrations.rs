//! Durable orchestrations: our provider for duroxide beside the two others, in one run.
//!
//! Three child processes, each with a database of its own on one server, do the same workloads in
//! turn, so that a noisy minute hits all of them. Statements are counted by PostgreSQL, for each
//! database apart; a stored procedure counts as one.

mod ceiling;
mod found;
mod rounds;

use anyhow::Context;
use reveille_testkit::scenario::{Plain, Report, progress};

use crate::bench::Bench;
use crate::cluster::Cluster;
use crate::peer::{self, Peer};
use found::Found;

/// Ours first; the names are those of the databases too.
const NAMES: [&str; 3] = ["reveille", "pg", "opt"];

pub(crate) async fn run(bench: &Bench) -> anyhow::Result<Report> {
    let peers_program = peer::build_peers().await?;
    progress("starting PostgreSQL with pg_stat_statements");
    let cluster = Cluster::start_with(|options| {
        let room = options.setting("max_connections", "400");
        let listed = room.setting("shared_preload_libraries", "pg_stat_statements");
        listed.setting("pg_stat_statements.max", "10000")
    })?;
    let version = cluster.database().await?.server_version().to_string();
    let mut peers = Vec::new();
    for name in NAMES {
        let url = database(&cluster, name).await?;
        let ours = std::env::current_exe().context("cannot find this program")?;
        peers.push(match name {
            "reveille" => Peer::start(name, &ours, &[peer::CHILD, &url])?,
            peer => Peer::start(name, &peers_program, &[peer, &url])?,
        });
    }

    let mut found: [Found; 3] = Default::default();
    rounds::idle_and_validation(bench, &mut peers, &mut found).await?;
    for round in 1..=bench.pick(1, 3) {
        rounds::latency(bench, round, &mut peers, &mut found).await?;
    }
    rounds::gaps(bench, &mut peers, &mut found).await?;
    rounds::stress(bench, &cluster.url_of(NAMES[0]), &mut peers, &mut found).await?;

    let versions = format!(
        "PostgreSQL {version}, fsync on; duroxide 0.1.32, `pg` is duroxide-pg 0.1.38, `opt` is duroxide-pg-opt 0.1.28"
    );
    let mut report = Report::new("orchestrations", versions);
    found::add_to(&mut report, &found);
    Ok(report)
}

/// A database of the peer's own, with the counter.
async fn database(cluster: &Cluster, name: &str) -> anyhow::Result<String> {
    let admin = Plain::connect(&cluster.url()).await?;
    admin.client.batch_execute(&format!("create database {name}")).await?;
    let url = cluster.url_of(name);
    let inside = Plain::connect(&url).await?;
    let counter = inside.client.batch_execute("create extension pg_stat_statements").await;
    counter.context("this PostgreSQL has no pg_stat_statements")?;
    Ok(url)
}
