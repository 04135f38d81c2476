//! A server that counts statements.

use reveille_testkit::{TestCluster, connect};
use tokio_postgres::Client;

/// A server of a test's own, whose statements can be counted.
pub(crate) struct Counted {
    cluster: TestCluster,
    admin: Client,
}

impl Counted {
    pub(crate) async fn start() -> Self {
        let preload = ("shared_preload_libraries", "pg_stat_statements");
        let cluster = TestCluster::start(|options| options.setting(preload.0, preload.1));
        let admin = connect(&cluster.url("postgres")).await;
        admin.batch_execute("create extension pg_stat_statements").await.expect("statements can be counted");
        Self { cluster, admin }
    }

    pub(crate) fn url(&self) -> String {
        self.cluster.url("postgres")
    }

    pub(crate) async fn forget(&self) {
        self.admin.batch_execute("select pg_stat_statements_reset()").await.expect("counts can be reset");
    }

    /// How often turns were claimed in `schema`.
    pub(crate) async fn turn_claims(&self, schema: &str) -> i64 {
        let claim = format!("%{schema}%.mailbox%skip locked%");
        self.count("query ilike $1", &claim).await
    }

    /// How often activities were claimed in `schema`.
    pub(crate) async fn activity_claims(&self, schema: &str) -> i64 {
        let claim = format!("%{schema}%.activity%skip locked%contended%");
        self.count("query ilike $1", &claim).await
    }

    /// How often a history was read in `schema` by a statement of its own.
    pub(crate) async fn reads(&self, schema: &str) -> i64 {
        let read = format!("select event_id%{schema}%.history%");
        self.count("query ilike $1", &read).await
    }

    /// How many statements there were, ours included.
    pub(crate) async fn all(&self) -> i64 {
        self.count("query not ilike $1", "%pg_stat_statements%").await
    }

    async fn count(&self, which: &str, pattern: &str) -> i64 {
        let count = format!("select coalesce(sum(calls), 0)::bigint from pg_stat_statements where {which}");
        self.admin.query_one(&count, &[&pattern]).await.expect("statements are counted").get(0)
    }
}
