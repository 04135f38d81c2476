//! The shared connections: a caller gets one free of what others left on it.

use std::time::Duration;

use reveille::database::{Database, DatabaseError, Statement, StatementMode};
use reveille_testkit::TestDatabase;
use tokio::time::timeout;

use crate::support::{options, soon, until};

static ENDLESS: Statement = Statement { name: "test/endless", sql: "select pg_sleep(600)::text", types: &[] };
static ONE: Statement = Statement { name: "test/one", sql: "select 1", types: &[] };

static DEMOTE: Statement = Statement { name: "test/demote", sql: "set default_transaction_read_only = on", types: &[] };
static WRITE: Statement = Statement { name: "test/write", sql: "create table public.written ()", types: &[] };

const MOMENT: Duration = Duration::from_millis(100);

/// A pool of one connection, and what that connection is left with.
async fn next_caller_is_answered(mode: StatementMode, leave_behind: impl AsyncFnOnce(&Database)) {
    let db = TestDatabase::empty().await;
    let database = soon(Database::connect(options(&db).pool_size(1).statement_mode(mode))).await.unwrap();
    leave_behind(&database).await;

    let answered = timeout(Duration::from_secs(5), async { database.acquire().await?.query_opt(&ONE, &[]).await });

    assert!(answered.await.expect("no earlier statement is waited for").unwrap().is_some(), "{mode:?}");
    let admin = db.client().await;
    let asleep = "select count(*) from pg_stat_activity where datname = current_database() and query like '%600%' \
                  and state = 'active' and pid <> pg_backend_pid()";
    until("the abandoned statement ends", async || admin.query_one(asleep, &[]).await.unwrap().get::<_, i64>(0) == 0)
        .await;
    database.close().await;
}

#[tokio::test]
async fn a_statement_that_was_given_up_is_not_waited_for_by_the_next_caller() {
    for mode in [StatementMode::Direct, StatementMode::Pooled] {
        next_caller_is_answered(mode, async |database| {
            let borrowed = database.acquire().await.unwrap();
            assert!(timeout(MOMENT, borrowed.query(&ENDLESS, &[])).await.is_err());
        })
        .await;
    }
}

#[tokio::test]
async fn a_transaction_that_was_given_up_is_not_waited_for_by_the_next_caller() {
    next_caller_is_answered(StatementMode::Direct, async |database| {
        let mut borrowed = database.acquire().await.unwrap();
        let transaction = borrowed.transaction().await.unwrap();
        assert!(timeout(MOMENT, transaction.query(&ENDLESS, &[])).await.is_err());
    })
    .await;
}

/// A server that was demoted may keep its sessions: a caller on one would be refused for ever.
#[tokio::test]
async fn a_session_that_accepts_no_writes_any_more_is_replaced() {
    for mode in [StatementMode::Direct, StatementMode::Pooled] {
        let db = TestDatabase::empty().await;
        let database = soon(Database::connect(options(&db).pool_size(1).statement_mode(mode))).await.unwrap();
        let mut borrowed = database.acquire().await.unwrap();
        borrowed.execute(&DEMOTE, &[]).await.unwrap();

        let refused = borrowed.execute(&WRITE, &[]).await.unwrap_err();

        assert!(matches!(refused, DatabaseError::ReadOnly { .. }), "{mode:?}: {refused:?}");
        assert!(refused.is_transient());
        assert!(borrowed.is_closed());
        let transaction = borrowed.transaction().await.unwrap();
        assert!(transaction.execute(&WRITE, &[]).await.is_err(), "it is still the same session");
        drop(transaction);
        drop(borrowed);
        database.acquire().await.unwrap().execute(&WRITE, &[]).await.unwrap();
        database.close().await;
    }
}
