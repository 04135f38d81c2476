//! Behind a transaction pooler: no failure among thousands, and nothing of ours in other people's
//! sessions.

use reveille::database::{
    Database, DatabaseError, DatabaseOptions, ExamineOptions, Purpose, Statement, StatementMode, Verdict,
};
use reveille_testkit::{LoginSettings, Pooler, TestDatabase};
use tokio_postgres::types::Type;

use crate::support::{migrated, soon};

static BUMP: Statement = Statement {
    name: "test/bump",
    sql: "insert into public.bumped (n) values ($1) returning n, current_setting('statement_timeout')",
    types: &[Type::INT8],
};

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_statements_through_a_pooler_all_succeed_and_leak_no_setting() {
    let db = TestDatabase::empty().await;
    let Some(pooler) = Pooler::before(&db, 3, LoginSettings::Refused) else { return };
    let admin = db.client().await;
    admin.batch_execute("create table bumped (n int8)").await.unwrap();
    let options = DatabaseOptions::new(pooler.url()).statement_mode(StatementMode::Pooled).pool_size(8);
    let database = migrated(options).await;
    let mut tasks = tokio::task::JoinSet::new();

    for worker in 0..16_i64 {
        let database = database.clone();
        tasks.spawn(async move {
            let mut own = database.connection(Purpose::Dedicated("test")).await.unwrap();
            for n in 0..250 {
                let number = worker * 1000 + n;
                let row = if n % 5 == 0 {
                    let transaction = own.transaction().await.unwrap();
                    let row = transaction.query_opt(&BUMP, &[&number]).await.unwrap();
                    transaction.commit_known().await.unwrap();
                    row
                } else if n % 5 == 1 {
                    database.acquire().await.unwrap().query_opt(&BUMP, &[&number]).await.unwrap()
                } else {
                    own.query_opt(&BUMP, &[&number]).await.unwrap()
                };
                let row = row.unwrap();
                assert_eq!(row.get::<_, i64>(0), number);
                assert_eq!(row.get::<_, &str>(1), "30s", "our limits hold inside");
            }
        });
    }
    // Others share the same server sessions meanwhile, and must find them as the server made them.
    let as_made = settings(&admin).await;
    let other = reveille_testkit::connect(&pooler.url()).await;
    let mut checks = 0;
    while !tasks.is_empty() {
        assert_eq!(settings(&other).await, as_made);
        checks += 1;
        while let Some(finished) = tasks.try_join_next() {
            finished.unwrap();
        }
    }

    let bumped: i64 = admin.query_one("select count(*) from bumped", &[]).await.unwrap().get(0);
    assert_eq!(bumped, 16 * 250);
    assert!(checks > 10, "{checks}");
    database.close().await;
}

/// What a session's settings are, by the simple protocol, which every pooler understands.
async fn settings(client: &tokio_postgres::Client) -> Vec<String> {
    let ask = "select name || '=' || setting from pg_settings where name in ('statement_timeout', 'lock_timeout', \
               'idle_in_transaction_session_timeout', 'synchronous_commit', 'plan_cache_mode', 'jit', 'enable_seqscan', \
               'default_transaction_isolation', 'transaction_isolation', 'search_path') order by name";
    let line = |message| match message {
        tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(ToOwned::to_owned),
        _ => None,
    };
    client.simple_query(ask).await.unwrap().into_iter().filter_map(line).collect()
}

#[tokio::test]
async fn direct_mode_through_a_pooler_is_refused_with_the_remedy() {
    let db = TestDatabase::empty().await;
    let Some(pooler) = Pooler::before(&db, 3, LoginSettings::Refused) else { return };

    let error = soon(Database::connect(DatabaseOptions::new(pooler.url()))).await.unwrap_err();

    assert!(matches!(error, DatabaseError::Pooler { .. }), "{error:?}");
    assert!(error.to_string().ends_with("choose the statement mode `pooled`"), "{error}");
}

#[tokio::test]
async fn a_pooler_that_swallows_notifications_is_found_and_a_url_for_listen_cures_it() {
    let db = TestDatabase::empty().await;
    let Some(pooler) = Pooler::before(&db, 3, LoginSettings::Refused) else { return };
    let options = DatabaseOptions::new(pooler.url()).statement_mode(StatementMode::Pooled);

    for (options, verdict) in [(options.clone(), Verdict::Fail), (options.listen_url(db.url()), Verdict::Ok)] {
        let database = migrated(options).await;
        let examination = soon(database.examine(&ExamineOptions::default())).await;
        let listen = examination.findings.iter().find(|finding| finding.name == "listen").unwrap();
        assert_eq!(listen.verdict, verdict, "{listen:?}");
        database.close().await;
    }
}
