//! The other PostgreSQL providers for duroxide, each as a process that can be measured.
//!
//! `duroxide-peers <pg|opt> <database URL>`; then commands on standard input, see the crate
//! `workload`.

use std::sync::Arc;

use anyhow::Context;
use duroxide::providers::Provider;
use workload::Peer;

/// `duroxide-pg`: polls.
struct Pg;

/// `duroxide-pg-opt`: woken by a trigger's NOTIFY.
struct Opt;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut words = std::env::args().skip(1);
    let (name, url) = (words.next().context("which provider?")?, words.next().context("which database?")?);
    match name.as_str() {
        "pg" => workload::serve(Pg, url).await,
        "opt" => workload::serve(Opt, url).await,
        other => anyhow::bail!("there is no provider {other}: pg or opt"),
    }
}

#[async_trait::async_trait]
impl Peer for Pg {
    async fn open(&self, url: &str, schema: &str) -> anyhow::Result<Arc<dyn Provider>> {
        Ok(Arc::new(duroxide_pg::PostgresProvider::new_with_schema(url, Some(schema)).await?))
    }

    fn waits(&self) -> bool {
        false
    }

    fn listener(&self) -> Option<&'static str> {
        None
    }

    fn spoil_history(&self, schema: &str) -> String {
        spoil(schema)
    }

    fn attempts(&self, schema: &str) -> String {
        attempts(schema)
    }
}

#[async_trait::async_trait]
impl Peer for Opt {
    async fn open(&self, url: &str, schema: &str) -> anyhow::Result<Arc<dyn Provider>> {
        Ok(Arc::new(duroxide_pg_opt::PostgresProvider::new_with_schema(url, Some(schema)).await?))
    }

    fn waits(&self) -> bool {
        true
    }

    fn listener(&self) -> Option<&'static str> {
        Some("query ilike 'listen %'")
    }

    fn spoil_history(&self, schema: &str) -> String {
        spoil(schema)
    }

    fn attempts(&self, schema: &str) -> String {
        attempts(schema)
    }
}

/// Both keep history and queue in tables of the same names.
fn spoil(schema: &str) -> String {
    format!("update {schema}.history set event_data = '{{\"not\": \"an event\"}}' where instance_id = $1")
}

fn attempts(schema: &str) -> String {
    format!("select coalesce(max(attempt_count), 0)::int4 from {schema}.orchestrator_queue where instance_id = $1")
}
