//! Behind a transaction pooler.

use reveille::database::{Database, DatabaseOptions, StatementMode};
use reveille_duroxide::PostgresProvider;
use reveille_testkit::{Events, LoginSettings, Pooler, TestDatabase};

use crate::fault_orders::{Ledger, begin, check_complete, client, run, times};

async fn order(options: DatabaseOptions) -> Database {
    let database =
        Database::connect(options.statement_mode(StatementMode::Pooled)).await.expect("the pooler can be reached");
    let provider = PostgresProvider::options().database(&database).open().await.expect("a provider opens");
    let ledger = Events::new();
    let working = run(&provider, Ledger::Memory(ledger.clone())).await;
    let orders = client(&provider);

    for number in 0..5 {
        begin(&orders, number).await;
    }

    for number in 0..5 {
        check_complete(&orders, number).await;
        assert_eq!(times(&ledger, number), [1, 1, 1, 1]);
    }
    working.shutdown(None).await;
    database
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orders_run_behind_a_pooler_with_a_direct_connection_for_listen() {
    let test = TestDatabase::new().await;
    let Some(pooler) = Pooler::before(&test, 4, LoginSettings::Refused) else { return };

    let database = order(DatabaseOptions::new(pooler.url()).listen_url(test.url())).await;

    assert!(database.link().is_proven());
    database.close().await;
}

/// No hint arrives; fallback polling finds what is ready.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orders_run_where_listen_cannot_work() {
    let test = TestDatabase::new().await;
    let Some(pooler) = Pooler::before(&test, 4, LoginSettings::Swallowed) else { return };

    let database = order(DatabaseOptions::new(pooler.url())).await;

    assert!(!database.link().is_proven());
    database.close().await;
}
