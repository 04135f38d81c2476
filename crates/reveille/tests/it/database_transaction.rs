//! Transactions: all or nothing, and an interrupted commit is resolved or called unknown, never
//! guessed.

use std::time::Duration;

use futures_util::FutureExt;
use reveille::database::{CommitOutcome, Database, DatabaseError, DatabaseOptions, Purpose, Statement, StatementMode};
use reveille_testkit::{Direction, FaultProxy, TestDatabase};
use tokio::time::Instant;
use tokio_postgres::types::Type;

use crate::support::{options, sessions, soon, until};

static WRITE: Statement =
    Statement { name: "test/write", sql: "insert into public.written (n) values ($1)", types: &[Type::INT8] };

async fn table(db: &TestDatabase) {
    let admin = db.client().await;
    admin.batch_execute("create table public.written (n int8 unique deferrable initially deferred)").await.unwrap();
}

async fn written(db: &TestDatabase) -> i64 {
    let admin = db.client().await;
    admin.query_one("select count(*) from written", &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn a_transaction_happens_whole_or_not_at_all_in_both_modes() {
    let db = TestDatabase::empty().await;
    table(&db).await;
    for (round, mode) in [StatementMode::Direct, StatementMode::Pooled].into_iter().enumerate() {
        let base = i64::try_from(round).unwrap() * 10;
        let database = soon(Database::connect(options(&db).statement_mode(mode))).await.unwrap();
        let mut connection = database.connection(Purpose::Dedicated("test")).await.unwrap();

        let dropped = connection.transaction().await.unwrap();
        dropped.execute(&WRITE, &[&base]).await.unwrap();
        drop(dropped);
        let rolled_back = connection.transaction().await.unwrap();
        rolled_back.execute(&WRITE, &[&base]).await.unwrap();
        rolled_back.rollback().await.unwrap();
        let kept = connection.transaction().await.unwrap();
        kept.execute(&WRITE, &[&(base + 1)]).await.unwrap();
        kept.execute(&WRITE, &[&(base + 2)]).await.unwrap();

        assert_eq!(kept.commit().await.unwrap(), CommitOutcome::Committed, "{mode:?}");
        database.close().await;
    }
    assert_eq!(written(&db).await, 4);
}

#[tokio::test]
async fn a_commit_after_a_failed_statement_is_an_error_not_a_silent_rollback() {
    static WRONG: Statement = Statement { name: "test/wrong", sql: "select 1 / 0", types: &[] };
    let db = TestDatabase::empty().await;
    table(&db).await;
    let database = soon(Database::connect(options(&db))).await.unwrap();
    let mut connection = database.connection(Purpose::Dedicated("test")).await.unwrap();

    let transaction = connection.transaction().await.unwrap();
    transaction.execute(&WRITE, &[&1_i64]).await.unwrap();
    transaction.query(&WRONG, &[]).await.unwrap_err();

    let error = transaction.commit().await.unwrap_err();

    assert!(matches!(error, DatabaseError::RolledBack), "{error:?}");
    assert!(!error.is_transient(), "what failed once for its values fails again");
    assert_eq!(written(&db).await, 0);
    database.close().await;
}

#[tokio::test]
async fn a_transaction_with_a_statement_that_was_given_up_is_not_called_committed() {
    static LATER_WRONG: Statement =
        Statement { name: "test/later_wrong", sql: "select 1 / (pg_sleep(0.2)::text <> '')::int4", types: &[] };
    let db = TestDatabase::empty().await;
    table(&db).await;
    for (n, mode) in [(1_i64, StatementMode::Direct), (2, StatementMode::Pooled)] {
        let database = soon(Database::connect(options(&db).statement_mode(mode))).await.unwrap();
        let mut connection = database.connection(Purpose::Dedicated("test")).await.unwrap();
        let transaction = connection.transaction().await.unwrap();
        transaction.execute(&WRITE, &[&n]).await.unwrap();

        // Its error comes when its caller has gone; PostgreSQL then answers COMMIT with a silent
        // rollback.
        let given_up = tokio::time::timeout(Duration::from_millis(100), transaction.query(&LATER_WRONG, &[])).await;
        assert!(given_up.is_err());

        let outcome = soon(transaction.commit()).await;
        assert!(matches!(outcome, Err(DatabaseError::RolledBack)), "{mode:?}: {outcome:?}");
        assert_eq!(
            soon(connection.execute(&WRITE, &[&(n + 10)])).await.unwrap(),
            1,
            "the connection is of use: {mode:?}"
        );
        database.close().await;
    }
    assert_eq!(written(&db).await, 2, "only what was written outside of the transactions");
}

#[tokio::test]
async fn a_caller_who_gives_up_while_a_transaction_begins_leaves_none_open() {
    let db = TestDatabase::empty().await;
    table(&db).await;
    for (n, mode) in [(1_i64, StatementMode::Direct), (2, StatementMode::Pooled)] {
        let database = soon(Database::connect(options(&db).statement_mode(mode))).await.unwrap();
        let mut connection = database.connection(Purpose::Dedicated("test")).await.unwrap();

        let given_up = connection.transaction().now_or_never();
        assert!(given_up.is_none());
        drop(given_up);
        connection.execute(&WRITE, &[&n]).await.unwrap();

        database.close().await;
        assert_eq!(written(&db).await, n, "{mode:?}");
    }
}

#[tokio::test]
async fn a_statement_of_its_own_that_is_refused_at_commit_is_an_error_in_both_modes() {
    static TWICE: Statement =
        Statement { name: "test/twice", sql: "insert into public.written (n) values ($1), ($1)", types: &[Type::INT8] };
    let db = TestDatabase::empty().await;
    table(&db).await;
    for mode in [StatementMode::Direct, StatementMode::Pooled] {
        let database = soon(Database::connect(options(&db).statement_mode(mode))).await.unwrap();

        let error = database.acquire().await.unwrap().execute(&TWICE, &[&1_i64]).await.unwrap_err();

        assert_eq!(error.sqlstate(), Some("23505"), "{mode:?}: {error:?}");
        database.close().await;
    }
    assert_eq!(written(&db).await, 0);
}

#[tokio::test]
async fn what_is_refused_at_commit_was_not_written() {
    let db = TestDatabase::empty().await;
    table(&db).await;
    let database = soon(Database::connect(options(&db))).await.unwrap();
    let mut connection = database.connection(Purpose::Dedicated("test")).await.unwrap();

    let transaction = connection.transaction().await.unwrap();
    transaction.execute(&WRITE, &[&1_i64]).await.unwrap();
    transaction.execute(&WRITE, &[&1_i64]).await.unwrap();
    let error = transaction.commit().await.unwrap_err();

    assert!(matches!(error, DatabaseError::Data { .. }), "{error:?}");
    assert_eq!(written(&db).await, 0);
    database.close().await;
}

/// What the proxy does to the COMMIT.
enum Cut {
    /// The server never sees it, and sees the connection end.
    BeforeTheServer,
    /// The server commits, the answer is lost.
    BeforeTheClient,
    /// Neither side receives anything any more, nor sees the connection end.
    Silently,
}

/// Commit one row through a proxy that cuts; returns the outcome and the rows that are there.
async fn cut(how: Cut, identified: bool) -> (Result<CommitOutcome, DatabaseError>, i64) {
    let db = TestDatabase::empty().await;
    table(&db).await;
    let (proxy, url) = db.proxied().await;
    let limits =
        DatabaseOptions::new(url).statement_timeout(Duration::from_millis(200)).connect_timeout(Duration::from_secs(1));
    let database = soon(Database::connect(limits)).await.unwrap();
    let mut connection = database.connection(Purpose::Dedicated("test")).await.unwrap();
    let mut transaction = soon(connection.transaction()).await.unwrap();
    if identified {
        transaction.identify().await.unwrap();
    }
    transaction.execute(&WRITE, &[&1_i64]).await.unwrap();
    match how {
        Cut::BeforeTheServer => proxy.cut_after(Direction::ToServer, 0),
        Cut::BeforeTheClient => proxy.cut_after_sending("commit\0"),
        Cut::Silently => proxy.half_open(),
    }

    let outcome = tokio::select! {
        outcome = soon(transaction.commit()) => outcome,
        never = heal_when_asked(&proxy, how) => never,
    };

    assert!(connection.is_closed());
    drop(connection);
    database.close().await;
    let rows = written(&db).await;
    drop(proxy);
    until("no session is left", async || sessions(&db).await == 0).await;
    (outcome, rows)
}

/// The pool's connection and the test's are open; a third one comes to cancel, a fourth to ask how
/// the commit ended.
async fn heal_when_asked<T>(proxy: &FaultProxy, how: Cut) -> T {
    if matches!(how, Cut::Silently) {
        tokio::select! {
            () = proxy.until_open(3) => {}
            () = proxy.until_open(4) => {}
        }
        proxy.heal();
    }
    std::future::pending().await
}

#[tokio::test]
async fn a_commit_that_never_arrived_is_known_not_to_have_happened() {
    let (outcome, rows) = cut(Cut::BeforeTheServer, true).await;

    assert!(matches!(outcome, Err(DatabaseError::NotCommitted { .. })), "{outcome:?}");
    assert_eq!(rows, 0);
}

#[tokio::test]
async fn a_commit_whose_answer_was_lost_is_known_to_have_happened() {
    let (outcome, rows) = cut(Cut::BeforeTheClient, true).await;

    assert_eq!(outcome.unwrap(), CommitOutcome::Committed);
    assert_eq!(rows, 1);
}

#[tokio::test]
async fn a_session_that_still_waits_for_the_commit_is_ended_so_that_it_is_decided() {
    let begun = Instant::now();
    let (outcome, rows) = cut(Cut::Silently, true).await;

    assert!(matches!(outcome, Err(DatabaseError::NotCommitted { .. })), "{outcome:?}");
    assert_eq!(rows, 0);
    assert!(begun.elapsed() < Duration::from_secs(12), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn an_interrupted_commit_of_an_unidentified_transaction_is_unknown() {
    let (before, nothing) = cut(Cut::BeforeTheServer, false).await;
    let (after, one) = cut(Cut::BeforeTheClient, false).await;

    assert_eq!(before.unwrap(), CommitOutcome::Unknown);
    assert_eq!(after.unwrap(), CommitOutcome::Unknown);
    assert_eq!((nothing, one), (0, 1));
}
