//! Statements: every file can be prepared, plans are as promised, and both modes answer alike.

use futures_util::future::join_all;
use reveille::database::{Database, DatabaseError, Purpose, SchemaName, Statement, StatementMode, statements};
use reveille_testkit::{Shutdown, TestCluster, TestDatabase, assert_planned, generic_plan};
use tokio_postgres::types::Type;

use crate::support::{migrated, options, soon};

const BOTH: [StatementMode; 2] = [StatementMode::Direct, StatementMode::Pooled];

static SUCCESSOR: Statement = Statement { name: "test/successor", sql: "select $1 + 1", types: &[Type::INT8] };
static WRITE: Statement =
    Statement { name: "test/write", sql: "insert into public.written (n) values ($1), ($1 + 1)", types: &[Type::INT8] };

#[tokio::test]
async fn every_file_can_be_prepared_under_an_awkward_name() {
    let db = TestDatabase::empty().await;
    let schema = "we\"ird $$ Näme";
    migrated(options(&db).schema(schema)).await.close().await;
    let schema: SchemaName = schema.parse().unwrap();
    let client = db.client().await;

    for statement in statements() {
        let prepared = client.prepare_typed(&statement.text(&schema), statement.types).await;
        let prepared = prepared.unwrap_or_else(|error| panic!("{}: {error:?}", statement.name));
        assert_eq!(prepared.params(), statement.types, "{}", statement.name);
        // The driver would look up any other type with named statements, which do not work behind a
        // pooler.
        let known = |column: &tokio_postgres::Column| Type::from_oid(column.type_().oid()).is_some();
        assert!(prepared.columns().iter().all(known), "{} returns a type that is not built in", statement.name);
    }
}

#[tokio::test]
async fn statements_whose_header_names_an_index_use_it() {
    let db = TestDatabase::empty().await;
    migrated(options(&db)).await.close().await;

    let client = db.client().await;
    // Those of the queues are checked on filled tables, in `tests/messages` and `tests/jobs`: on
    // empty ones any plan is as good as another.
    let of_queues = |name: &str| name.starts_with("messages/") || name.starts_with("jobs/");
    for statement in statements().filter(|statement| !of_queues(statement.name)) {
        assert_planned(&client, &SchemaName::default(), statement).await;
    }
}

#[tokio::test]
async fn the_check_of_plans_knows_a_used_index_from_an_unused_one() {
    static BY_INDEX: Statement = Statement {
        name: "test/by_index",
        sql: "-- Find.\n-- plan: index scan using big_n\nselect m from public.big where n = $1",
        types: &[Type::INT4],
    };
    static BY_SCAN: Statement = Statement {
        name: "test/by_scan",
        sql: "-- Find.\n-- plan: index scan using big_n\nselect m from public.big where n + 0 = $1",
        types: &[Type::INT4],
    };
    let db = TestDatabase::empty().await;
    let client = db.client().await;
    let make = "create table big as select n, n as m from generate_series(1, 100000) n; create index big_n on big (n); analyze big";
    client.batch_execute(make).await.unwrap();

    let plan = async |statement| generic_plan(&client, &SchemaName::default(), statement).await;
    assert!(plan(&BY_INDEX).await.contains(BY_INDEX.planned_index().unwrap()));
    assert!(!plan(&BY_SCAN).await.contains(BY_SCAN.planned_index().unwrap()));
}

#[tokio::test(flavor = "multi_thread")]
async fn many_statements_share_one_connection_and_each_gets_its_own_answer() {
    let db = TestDatabase::empty().await;
    for mode in BOTH {
        let database = soon(Database::connect(options(&db).statement_mode(mode))).await.unwrap();
        let connection = database.connection(Purpose::Dedicated("test")).await.unwrap();

        let answers = soon(join_all((0..500_i64).map(async |n| {
            let row = connection.query_opt(&SUCCESSOR, &[&n]).await.unwrap().unwrap();
            row.get::<_, i64>(0)
        })))
        .await;

        assert_eq!(answers, (1..=500).collect::<Vec<i64>>(), "{mode:?}");
        database.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_that_share_a_pooled_connection_do_not_share_a_transaction() {
    static FAIL_IF_ODD: Statement = Statement {
        name: "test/fail_if_odd",
        sql: "insert into public.written (n) values (case when $1 % 2 = 1 then 1 / ($1 - $1) else $1 end)",
        types: &[Type::INT8],
    };
    let db = TestDatabase::empty().await;
    let admin = db.client().await;
    admin.batch_execute("create table public.written (n int8)").await.unwrap();
    let database = soon(Database::connect(options(&db).statement_mode(StatementMode::Pooled))).await.unwrap();
    let connection = std::sync::Arc::new(database.connection(Purpose::Dedicated("test")).await.unwrap());
    let mut tasks = tokio::task::JoinSet::new();

    for n in 0..400_i64 {
        let connection = std::sync::Arc::clone(&connection);
        tasks.spawn(async move { (n, connection.execute(&FAIL_IF_ODD, &[&n]).await) });
    }
    let results = soon(tasks.join_all()).await;

    for (n, result) in results {
        assert_eq!(result.is_ok(), n % 2 == 0, "{n}: {result:?}");
    }
    let written: i64 = admin.query_one("select count(*) from written", &[]).await.unwrap().get(0);
    assert_eq!(written, 200);
    database.close().await;
}

#[tokio::test]
async fn writes_are_counted_and_bad_values_are_the_callers_fault_in_both_modes() {
    static TOO_BIG: Statement =
        Statement { name: "test/too_big", sql: "insert into public.written (n) values ($1 / 0)", types: &[Type::INT8] };
    let db = TestDatabase::empty().await;
    let admin = db.client().await;
    admin.batch_execute("create table public.written (n int8)").await.unwrap();

    for mode in BOTH {
        let database = soon(Database::connect(options(&db).statement_mode(mode))).await.unwrap();
        let connection = database.acquire().await.unwrap();

        assert_eq!(connection.execute(&WRITE, &[&1_i64]).await.unwrap(), 2, "{mode:?}");
        let error = connection.execute(&TOO_BIG, &[&1_i64]).await.unwrap_err();
        assert!(matches!(error, DatabaseError::Data { .. }), "{mode:?}: {error:?}");
        assert_eq!(error.sqlstate(), Some("22012"), "{mode:?}");
        assert!(!connection.is_closed());
        drop(connection);
        database.close().await;
    }
    let written: i64 = admin.query_one("select count(*) from written", &[]).await.unwrap().get(0);
    assert_eq!(written, 4);
}

#[tokio::test]
async fn a_statement_that_takes_too_long_is_ended_by_the_server_in_both_modes() {
    static SLOW: Statement = Statement { name: "test/slow", sql: "select pg_sleep(60)::text", types: &[] };
    let db = TestDatabase::empty().await;

    for mode in BOTH {
        let chosen = options(&db).statement_mode(mode).statement_timeout(std::time::Duration::from_millis(100));
        let database = soon(Database::connect(chosen)).await.unwrap();

        let error = soon(database.acquire().await.unwrap().query(&SLOW, &[])).await.unwrap_err();

        assert!(matches!(error, DatabaseError::Timeout { .. }), "{mode:?}: {error:?}");
        assert_eq!(error.sqlstate(), Some("57014"), "{mode:?}");
        database.close().await;
    }
}

#[tokio::test]
async fn a_stale_plan_is_replaced_when_the_statement_is_sent_again() {
    static ALL_COLUMNS: Statement = Statement { name: "test/all", sql: "select * from public.changing", types: &[] };
    let db = TestDatabase::empty().await;
    let admin = db.client().await;
    admin.batch_execute("create table changing (a int)").await.unwrap();
    let database = soon(Database::connect(options(&db))).await.unwrap();
    let connection = database.connection(Purpose::Dedicated("test")).await.unwrap();
    connection.query(&ALL_COLUMNS, &[]).await.unwrap();
    admin.batch_execute("alter table changing add b text").await.unwrap();

    let error = connection.query(&ALL_COLUMNS, &[]).await.unwrap_err();

    assert!(error.is_transient(), "{error:?}");
    connection.query(&ALL_COLUMNS, &[]).await.unwrap();
    database.close().await;
}

/// A plan is kept, and the table that was small when it was made may grow at any time. After one
/// slow answer, whatever made it slow, the session plans by the present sizes.
#[tokio::test]
async fn plans_are_discarded_after_a_slow_answer() {
    static KNOWN: Statement = Statement {
        name: "test/known",
        sql: "select count(*) from unnest($1::int[]) as asked (n) join public.grown on grown.n = asked.n",
        types: &[Type::INT4_ARRAY],
    };
    static READ: Statement = Statement {
        name: "test/read",
        sql: "select (seq_tup_read + idx_tup_fetch)::bigint from pg_stat_xact_user_tables where relname = 'grown'",
        types: &[],
    };
    static SLOW: Statement = Statement { name: "test/slow", sql: "select pg_sleep(0.06)::text", types: &[] };
    let db = TestDatabase::empty().await;
    let admin = db.client().await;
    let small =
        "create table grown (n int primary key) with (autovacuum_enabled = off); insert into grown values (1), (2)";
    for sql in [small, "vacuum analyze grown"] {
        admin.batch_execute(sql).await.unwrap();
    }
    let database = soon(Database::connect(options(&db))).await.unwrap();
    let mut connection = database.connection(Purpose::Dedicated("test")).await.unwrap();
    let wanted: Vec<i32> = (1..=5).collect();
    connection.query(&KNOWN, &[&wanted]).await.unwrap();
    admin.batch_execute("insert into grown select generate_series(3, 50000)").await.unwrap();

    let mut read = Vec::new();
    for slow in [true, false] {
        let transaction = connection.transaction().await.unwrap();
        let counted = async || transaction.query_opt(&READ, &[]).await.unwrap().unwrap().get::<_, i64>(0);
        let before = counted().await;
        transaction.query(&KNOWN, &[&wanted]).await.unwrap();
        read.push(counted().await - before);
        transaction.rollback().await.unwrap();
        if slow {
            connection.query(&SLOW, &[]).await.unwrap();
        }
    }

    assert!(read[0] >= 50_000, "the plan of the small table was not kept: {read:?}");
    assert!(read[1] <= 5, "the plan was not discarded: {read:?}");
    database.close().await;
}

#[tokio::test]
async fn a_server_that_restarts_under_load_is_found_again() {
    use reveille::service::{Idempotent, Retry};
    let cluster = std::sync::Arc::new(TestCluster::start(|options| options));
    let database =
        soon(Database::connect(reveille::database::DatabaseOptions::new(cluster.url("postgres")))).await.unwrap();
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let mut load = tokio::task::JoinSet::new();
    for n in 0..8_i64 {
        let (database, stopped) = (database.clone(), stopped.clone());
        load.spawn(async move {
            let (mut answered, mut refusals) = (0, Vec::new());
            while !*stopped.borrow() {
                let retry = Retry::default().attempts(200);
                let query = retry.run(Idempotent(|| async {
                    let connection = database.acquire().await?;
                    connection.query_opt(&SUCCESSOR, &[&n]).await
                }));
                match query.await {
                    Ok(_) => answered += 1,
                    Err(error) => refusals.push(error),
                }
            }
            (answered, refusals)
        });
    }

    for _ in 0..2 {
        let cluster = std::sync::Arc::clone(&cluster);
        tokio::task::spawn_blocking(move || cluster.restart(Shutdown::Kill)).await.unwrap();
    }
    let again = soon(
        Retry::default()
            .attempts(200)
            .run(Idempotent(|| async { database.acquire().await?.query_opt(&SUCCESSOR, &[&1_i64]).await })),
    );
    assert!(again.await.is_ok());
    stop.send(true).unwrap();

    for (answered, refusals) in soon(load.join_all()).await {
        assert!(answered > 0);
        assert!(refusals.is_empty(), "{refusals:?}");
    }
    database.close().await;
}
