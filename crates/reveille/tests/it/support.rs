//! Shared by the tests: clusters of their own, certificates, and ways to wait.

use std::future::Future;
use std::time::Duration;

use reveille::database::{Database, DatabaseOptions};
use reveille_testkit::TestDatabase;
use tokio::time::{Instant, timeout};

pub(crate) mod certificates;
pub(crate) mod cluster;

/// No test waits longer than this for anything.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// Fail loudly instead of hanging.
pub(crate) async fn soon<T>(work: impl Future<Output = T>) -> T {
    timeout(SOON, work).await.expect("it took too long")
}

/// Ask until the answer is yes.
pub(crate) async fn until<F>(what: &str, mut holds: impl FnMut() -> F)
where
    F: Future<Output = bool>,
{
    let begun = Instant::now();
    while !holds().await {
        assert!(begun.elapsed() < SOON, "waited in vain until {what}");
        tokio::time::sleep(Duration::from_millis(10)).await; // tidy: sleep because the server announces no such event
    }
}

/// Connect and bring the schema up.
pub(crate) async fn migrated(options: DatabaseOptions) -> Database {
    let database = soon(Database::connect(options)).await.expect("connects");
    soon(database.migrate()).await.expect("migrates");
    database
}

/// Options for a test's database.
pub(crate) fn options(db: &TestDatabase) -> DatabaseOptions {
    DatabaseOptions::new(db.url())
}

/// How many sessions there are in a database, the one that asks excluded.
pub(crate) async fn sessions(db: &TestDatabase) -> i64 {
    let counted =
        "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()";
    db.client().await.query_one(counted, &[]).await.expect("counts").get(0)
}

/// An error and its causes, as a person sees them.
pub(crate) fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
