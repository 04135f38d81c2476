//! Closing: nothing stays behind, what is in flight is answered, and later callers get an error.

use std::time::Duration;

use reveille::database::{Database, DatabaseError, Purpose, Statement};
use reveille_testkit::TestDatabase;
use tokio::time::Instant;

use crate::support::{options, sessions, soon, until};

static SLOW: Statement = Statement { name: "test/slow", sql: "select pg_sleep(0.5)::text", types: &[] };
static ENDLESS: Statement = Statement { name: "test/endless", sql: "select pg_sleep(600)::text", types: &[] };

#[tokio::test]
async fn closing_ends_every_session_also_those_that_batchers_hold() {
    let db = TestDatabase::empty().await;
    let database = soon(Database::connect(options(&db))).await.unwrap();
    let batchers = [
        database.connection(Purpose::Dedicated("push")).await.unwrap(),
        database.connection(Purpose::Dedicated("pop")).await.unwrap(),
    ];
    let borrowed = database.acquire().await.unwrap();
    assert_eq!(sessions(&db).await, 3);

    soon(database.close()).await;

    until("every session is gone", async || sessions(&db).await == 0).await;
    assert!(batchers.iter().all(reveille::database::Connection::is_closed));
    assert!(borrowed.is_closed());
}

#[tokio::test]
async fn what_is_in_flight_is_answered_before_the_close_ends() {
    let db = TestDatabase::empty().await;
    let database = soon(Database::connect(options(&db))).await.unwrap();
    let connection = database.connection(Purpose::Dedicated("test")).await.unwrap();
    let admin = db.client().await;
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move { connection.query(&SLOW, &[]).await });
    let running =
        "select count(*) from pg_stat_activity where query like '%pg_sleep(0.5)%' and pid <> pg_backend_pid()";
    until("the statement runs", async || admin.query_one(running, &[]).await.unwrap().get::<_, i64>(0) > 0).await;

    soon(database.close()).await;

    assert_eq!(soon(tasks.join_next()).await.unwrap().unwrap().unwrap().len(), 1);
}

#[tokio::test]
async fn a_statement_that_does_not_end_holds_up_the_close_for_five_seconds_only() {
    let db = TestDatabase::empty().await;
    let database = soon(Database::connect(options(&db))).await.unwrap();
    let connection = database.connection(Purpose::Dedicated("test")).await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move { connection.query(&ENDLESS, &[]).await });
    tokio::task::yield_now().await;
    let begun = Instant::now();

    soon(database.close()).await;

    assert!(begun.elapsed() < Duration::from_secs(7), "{:?}", begun.elapsed());
    assert!(matches!(soon(tasks.join_next()).await.unwrap().unwrap(), Err(DatabaseError::Lost { .. })));
}

#[tokio::test]
async fn a_closed_database_says_so() {
    let db = TestDatabase::empty().await;
    let database = soon(Database::connect(options(&db))).await.unwrap();

    soon(database.close()).await;
    soon(database.close()).await;

    assert!(matches!(database.acquire().await, Err(DatabaseError::Closed)));
    assert!(matches!(database.connection(Purpose::Dedicated("x")).await, Err(DatabaseError::Closed)));
    assert!(matches!(database.migrate().await, Err(DatabaseError::Closed)));
}

#[tokio::test]
async fn a_dropped_connection_ends_its_session() {
    let db = TestDatabase::empty().await;
    let database = soon(Database::connect(options(&db))).await.unwrap();
    let before = sessions(&db).await;

    drop(database.connection(Purpose::Dedicated("test")).await.unwrap());

    until("its session is gone", async || sessions(&db).await == before).await;
    database.close().await;
}

#[tokio::test]
async fn a_pool_that_stays_busy_says_how_large_it_is() {
    let db = TestDatabase::empty().await;
    let chosen = options(&db).pool_size(1).connect_timeout(Duration::from_millis(200));
    let database = soon(Database::connect(chosen)).await.unwrap();
    let _held = database.acquire().await.unwrap();

    let error = soon(database.acquire()).await.unwrap_err();

    assert!(error.to_string().starts_with("all 1 connections for callers stayed busy for 200ms"), "{error}");
    database.close().await;
}
