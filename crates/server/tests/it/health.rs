//! What probes are told while the database is there.

use reveille_testkit::TestDatabase;

use crate::support::Running;

#[tokio::test]
async fn a_healthy_server_says_so_three_times() {
    let db = TestDatabase::new().await;
    let server = Running::start(&db.url(), |options| options).await;

    assert_eq!(server.get("/livez").await.status, 200);
    let ready = server.get("/readyz").await;
    assert_eq!((ready.status, ready.json()["status"].as_str()), (200, Some("ready")));
    let health = server.get("/health").await;
    assert_eq!(health.status, 200);
    assert!(health.head.contains("content-type: application/json"), "{}", health.head);
    let said = health.json();
    assert_eq!(said["status"], "healthy");
    assert_eq!(said["database"], "connected");
    assert_eq!(said["server"], "reveille");
    assert_eq!(said["version"], env!("CARGO_PKG_VERSION"));
}

/// When each session of this database last began a statement, without our own.
const STATEMENTS: &str = "select coalesce(string_agg(pid || ' ' || query_start, ', ' order by pid), '')
    from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()";

#[tokio::test]
async fn livez_never_asks_the_database() {
    let db = TestDatabase::new().await;
    let observer = db.client().await;
    let server = Running::start(&db.url(), |options| options).await;
    let before: String = observer.query_one(STATEMENTS, &[]).await.unwrap().get(0);

    for _ in 0..20 {
        assert_eq!(server.get("/livez").await.status, 200);
    }

    let after: String = observer.query_one(STATEMENTS, &[]).await.unwrap().get(0);
    assert_eq!(before, after);
    server.get("/readyz").await;
    let asked: String = observer.query_one(STATEMENTS, &[]).await.unwrap().get(0);
    assert_ne!(before, asked, "the observer would have seen it");
}
