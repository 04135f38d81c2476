//! Every statement that PostgreSQL runs, counted by PostgreSQL itself, utility ones too.

use anyhow::Context;
use reveille_testkit::scenario::progress;
use tokio_postgres::Client;

use crate::cluster::Cluster;

/// A server that counts.
pub(crate) fn counting_cluster() -> anyhow::Result<Cluster> {
    progress("starting PostgreSQL with pg_stat_statements");
    Cluster::start_with(|options| {
        let count_all = options.setting("pg_stat_statements.track_utility", "on");
        count_all.setting("shared_preload_libraries", "pg_stat_statements")
    })
}

/// From here on [`count`] works.
pub(crate) async fn make_countable(admin: &Client) -> anyhow::Result<()> {
    let made = admin.batch_execute("create extension pg_stat_statements").await;
    made.context("this PostgreSQL has no pg_stat_statements")
}

/// Every statement so far, but not those that count.
pub(crate) async fn count(admin: &Client) -> anyhow::Result<f64> {
    let counted =
        "select coalesce(sum(calls), 0)::float8 from pg_stat_statements where query not like '%pg_stat_statements%'";
    Ok(admin.query_one(counted, &[]).await?.get(0))
}
