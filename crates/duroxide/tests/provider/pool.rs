//! How many connections the constructors of `duroxide-pg` allow.

use std::future::poll_fn;
use std::process::Command;
use std::task::Poll;

use reveille::database::{Pooled, Statement};
use reveille_duroxide::PostgresProvider;
use reveille_testkit::TestDatabase;

const THIS_TEST: &str = "pool::the_environment_limits_the_connections_of_the_constructors_of_duroxide_pg";
const PLACE: &str = "REVEILLE_TEST_PLACE_OF_WORK";

static SESSION: Statement = Statement { name: "test/session", sql: "select pg_backend_pid()", types: &[] };

async fn session(connection: &Pooled) -> i32 {
    connection.query(&SESSION, &[]).await.expect("a session answers")[0].get(0)
}

/// Whether a third caller waits for one of two connections, and is then given it. One that may open
/// a third does.
async fn two_are_all(url: &str) -> bool {
    let provider = PostgresProvider::new(url).await.expect("a provider opens");
    let database = provider.database();
    let (first, second) = (database.acquire().await.expect("one"), database.acquire().await.expect("two"));
    let freed = session(&first).await;
    let mut third = Box::pin(database.acquire());
    assert!(poll_fn(|context| Poll::Ready(third.as_mut().poll(context))).await.is_pending());
    drop(first);
    let third = third.await.expect("three, in the end");
    let is_all = session(&third).await == freed;
    drop((second, third));
    provider.close().await;
    is_all
}

/// Where the database is, if this process was started by the test.
#[expect(clippy::disallowed_methods, reason = "how the program that a test starts learns what it is")]
fn place_of_work() -> Option<String> {
    std::env::var(PLACE).ok()
}

/// The environment is a process's own, so the one with the limit is another process: this test
/// again.
#[tokio::test]
async fn the_environment_limits_the_connections_of_the_constructors_of_duroxide_pg() {
    if let Some(url) = place_of_work() {
        assert!(two_are_all(&url).await);
        return;
    }
    let database = TestDatabase::new().await;
    let url = database.url();
    assert!(!two_are_all(&url).await, "without a limit there are more than two");
    let mut limited = Command::new(std::env::current_exe().expect("a test knows its program"));
    limited.args([THIS_TEST, "--exact"]).env(PLACE, url).env("DUROXIDE_PG_POOL_MAX", "2");

    let ended = tokio::task::spawn_blocking(move || limited.output()).await.unwrap().unwrap();

    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stdout));
    assert!(String::from_utf8_lossy(&ended.stdout).contains("1 passed"), "the started program tested nothing");
}
