//! Health checks while the database does not answer.

use std::time::{Duration, Instant};

use reveille::database::{Database, DatabaseOptions};
use reveille_testkit::{TestDatabase, connect};
use tokio::time::sleep;

use crate::support::{PATIENCE, Reply, Running};

/// Repeats the request until the answer has this status.
async fn until(server: &Running, path: &str, status: u16) -> Reply {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let reply = server.get(path).await;
        if reply.status == status {
            return reply;
        }
        assert!(Instant::now() < deadline, "{path} still answers {}", reply.status);
        sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn readiness_goes_with_the_database_and_comes_back_with_it() {
    let db = TestDatabase::new().await;
    let (proxy, url) = db.proxied().await;
    let server = Running::start(&url, |options| options).await;
    assert_eq!(server.get("/readyz").await.status, 200);

    proxy.refuse();

    let unready = until(&server, "/readyz", 503).await;
    assert_eq!(unready.json()["code"], "database_unavailable");
    assert!(unready.head.contains("retry-after: 1"), "{}", unready.head);
    let unhealthy = server.get("/health").await;
    assert_eq!(unhealthy.status, 503);
    assert_eq!(unhealthy.json()["status"], "unhealthy");
    assert_eq!(unhealthy.json()["database"], "disconnected");
    assert_eq!(server.get("/livez").await.status, 200);

    proxy.heal();

    until(&server, "/readyz", 200).await;
    assert_eq!(server.get("/health").await.json()["database"], "connected");
}

#[tokio::test]
async fn a_database_that_never_answers_is_noticed_in_time() {
    let db = TestDatabase::new().await;
    let (proxy, url) = db.proxied().await;
    // The request timeout does not apply to health checks: they notice the outage after two
    // seconds.
    let server = Running::start(&url, |options| options.request_timeout(Duration::from_secs(1))).await;
    assert_eq!(server.get("/readyz").await.status, 200);
    proxy.half_open();

    let begun = Instant::now();
    let unready = until(&server, "/readyz", 503).await;

    assert_eq!(unready.json()["code"], "database_unavailable");
    assert!(begun.elapsed() < Duration::from_secs(6), "{:?}", begun.elapsed());
    let begun = Instant::now();
    assert_eq!(server.get("/livez").await.status, 200);
    assert!(begun.elapsed() < Duration::from_secs(1));

    // The lost answers never come; readiness must not wait for them.
    proxy.heal();
    until(&server, "/readyz", 200).await;
}

#[tokio::test]
async fn a_connection_that_died_between_two_probes_is_no_outage() {
    let db = TestDatabase::new().await;
    let (proxy, url) = db.proxied().await;
    let server = Running::start(&url, |options| options).await;

    proxy.cut();

    assert_eq!(server.get("/readyz").await.status, 200);
}

#[tokio::test]
async fn a_postgresql_without_room_for_more_leaves_a_working_node_ready() {
    let db = TestDatabase::new().await;
    let server = Running::start(&db.url(), |options| options).await;
    assert_eq!(server.get("/readyz").await.status, 200);
    let admin = connect(&db.url().replace(db.name(), "postgres")).await;
    admin.batch_execute(&format!("alter database {} allow_connections false", db.name())).await.unwrap();
    assert!(Database::connect(DatabaseOptions::new(db.url())).await.is_err());
    // The previous answer is used for a second.
    sleep(Duration::from_millis(1100)).await;

    assert_eq!(server.get("/readyz").await.status, 200);
}
