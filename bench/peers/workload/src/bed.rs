//! One provider in its own database, and what is needed around it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use duroxide::providers::{ExecutionMetadata, Provider, WorkItem};
use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls};

use crate::Peer;

/// Where a peer is measured.
#[derive(Clone)]
pub(crate) struct Bed {
    pub(crate) peer: Arc<dyn Peer>,
    pub(crate) url: String,
    next: Arc<AtomicU32>,
}

impl Bed {
    pub(crate) fn new(peer: Arc<dyn Peer>, url: String) -> Self {
        Self { peer, url, next: Arc::default() }
    }

    /// A provider on a schema of its own.
    pub(crate) async fn open(&self) -> anyhow::Result<Arc<dyn Provider>> {
        Ok(self.open_named().await?.1)
    }

    /// The same, with the schema's name.
    pub(crate) async fn open_named(&self) -> anyhow::Result<(String, Arc<dyn Provider>)> {
        let schema = format!("bench_{}", self.next.fetch_add(1, Ordering::Relaxed));
        let provider = self.peer.open(&self.url, &schema).await?;
        Ok((schema, provider))
    }

    /// A plain connection to the same database.
    pub(crate) async fn plain(&self) -> anyhow::Result<Plain> {
        let (client, connection) = tokio_postgres::connect(&self.url, NoTls).await?;
        let mut driver = JoinSet::new();
        driver.spawn(connection);
        Ok(Plain { client, _driver: driver })
    }
}

/// A plain connection; it lasts as long as this does.
pub(crate) struct Plain {
    pub(crate) client: Client,
    _driver: JoinSet<Result<(), tokio_postgres::Error>>,
}

/// Every statement of this database so far, but not those that count.
pub(crate) async fn statements(client: &Client) -> anyhow::Result<f64> {
    let counted = "select coalesce(sum(calls), 0)::float8 from pg_stat_statements s \
                   join pg_database d on d.oid = s.dbid \
                   where d.datname = current_database() and query not like '%pg_stat_statements%'";
    Ok(client.query_one(counted, &[]).await?.get(0))
}

/// The message that starts an instance.
pub(crate) fn start(instance: &str) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: instance.to_owned(),
        orchestration: "Bench".to_owned(),
        input: "{}".to_owned(),
        version: Some("1.0.0".to_owned()),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: duroxide::INITIAL_EXECUTION_ID,
    }
}

/// An activity without an orchestration.
pub(crate) fn activity(instance: &str) -> WorkItem {
    WorkItem::ActivityExecute {
        instance: instance.to_owned(),
        execution_id: duroxide::INITIAL_EXECUTION_ID,
        id: 1,
        name: "Bench".to_owned(),
        input: "{}".to_owned(),
        session_id: None,
        tag: None,
    }
}

/// What a turn records about its instance.
pub(crate) fn metadata() -> ExecutionMetadata {
    ExecutionMetadata {
        orchestration_name: Some("Bench".to_owned()),
        orchestration_version: Some("1.0.0".to_owned()),
        ..ExecutionMetadata::default()
    }
}
