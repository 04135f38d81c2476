//! Shared by the engine's tests, besides the test kit: a cluster with a standby.

use std::time::Duration;

use reveille_testkit::TestDatabase;
use reveille_testkit::plain_queue::{self, Node};
use reveille_wake::Event;
use tokio_postgres::Client;

#[expect(dead_code, reason = "shared with the tests of the database layer, which use more of it")]
#[path = "../it/support/cluster.rs"]
pub(crate) mod cluster;

/// So long that nothing in a test is explained by it.
pub(crate) const NEVER: Duration = Duration::from_secs(3600);

/// A database with the schema and the plain table.
pub(crate) async fn database() -> TestDatabase {
    let database = TestDatabase::new().await;
    plain_queue::create(&database.client().await).await;
    database
}

/// Waits until a claim round of the node has ended, so that its demand sleeps.
pub(crate) async fn parked(node: &Node) {
    node.events.until(|event| matches!(event, Event::RoundEnded { .. })).await;
}

pub(crate) fn broke(event: &Event) -> bool {
    matches!(event, Event::Link(link) if link.is_broken())
}

pub(crate) fn proven(event: &Event) -> bool {
    matches!(event, Event::Link(link) if link.is_proven())
}

/// Ends the sessions of one purpose; returns how many there were.
pub(crate) async fn terminate(client: &Client, purpose: &str) -> usize {
    let kill = "select pg_terminate_backend(pid) from pg_stat_activity
         where datname = current_database() and application_name = 'reveille ' || $1";
    client.query(kill, &[&purpose]).await.unwrap().len()
}
