//! Installs pgmq's SQL into a database: `pgmq-peer <database URL>`.
//!
//! The scenario `messages` then calls its functions through the same driver as ours, so that SQL is
//! compared with SQL.

use anyhow::Context;
use pgmq::PGMQueueExt;
use sqlx::postgres::PgPoolOptions;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let url = std::env::args().nth(1).context("which database?")?;
    // pgmq reads no URL that leads to a Unix socket; its pool does.
    let pool = PgPoolOptions::new().max_connections(1).connect(&url).await?;
    let queue = PGMQueueExt::new_with_pool(pool).await;
    queue.install_sql_from_embedded().await?;
    let version = queue.installed_version().await?.context("nothing was installed")?;
    println!("{version}");
    Ok(())
}
