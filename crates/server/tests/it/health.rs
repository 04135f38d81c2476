//! Health checks while the database answers.

use reveille_testkit::TestDatabase;

use crate::support::Running;

#[tokio::test]
async fn a_healthy_server_passes_all_three_checks() {
    let db = TestDatabase::new().await;
    let server = Running::start(&db.url(), |options| options).await;

    assert_eq!(server.get("/livez").await.status, 200);
    let ready = server.get("/readyz").await;
    assert_eq!((ready.status, ready.json()["status"].as_str()), (200, Some("ready")));
    let health = server.get("/health").await;
    assert_eq!(health.status, 200);
    assert!(health.head.contains("content-type: application/json"), "{}", health.head);
    let answer = health.json();
    assert_eq!(answer["status"], "healthy");
    assert_eq!(answer["database"], "connected");
    assert_eq!(answer["server"], "reveille");
    assert_eq!(answer["version"], env!("CARGO_PKG_VERSION"));
}

/// When each session of this database, except our own, last began a statement.
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
    let after_readyz: String = observer.query_one(STATEMENTS, &[]).await.unwrap().get(0);
    assert_ne!(before, after_readyz, "the observer sees statements");
}
