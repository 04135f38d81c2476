//! Whether the plans of the hot statements are as their headers promise, on queues that are large
//! and lopsided.

use reveille::database::{Database, DatabaseOptions, Purpose, SchemaName, Statement, statements};
use reveille_testkit::{TestDatabase, assert_planned, generic_plan};
use tokio_postgres::Client;

/// 100,000 partitions, nearly all of them idle; one queue has most of them, one group has most
/// cursors; one partition has half of all segments.
const SKEWED: &str = "
    insert into reveille.queue (name, namespace) select 'q' || n, 'n' || n % 10 from generate_series(1, 1000) as n;
    insert into reveille.partition (queue, name)
    select case when n % 10 < 8 then 1 else 1 + n % 1000 end, 'p' || n from generate_series(1, 100000) as n;
    insert into reveille.partition_row (partition, queue, next_seq, new_since)
    select id, queue, 2, case when id % 1000 = 0 then now() end from reveille.partition;
    insert into reveille.consumer_group (queue, name, mode, settled)
    select n, 'g', 'all', true from generate_series(1, 1000) as n;
    insert into reveille.cursor (partition, grp, committed, upto, due_at, lease_until, nonce)
    select partition, queue, 1, 1,
           case when partition % 500 = 0 then now() when partition % 100 = 0 then now() + interval '1 minute' end,
           case when partition % 100 = 0 and partition % 500 <> 0 then now() + interval '1 minute' end, gen_random_uuid()
    from reveille.partition_row;
    insert into reveille.segment (partition, last_seq, n, bytes, at, ids, payloads)
    select case when n % 2 = 0 then 1 else n end, n, 1, 4, now(), array[gen_random_uuid()], array['body'::bytea]
    from generate_series(1, 100000) as n;
    analyze";

const HOT: [&str; 5] = [
    "messages/pop/claim.sql",
    "messages/pop/claim_plain.sql",
    "messages/pop/dues.sql",
    "messages/pop/abandon.sql",
    "messages/pop/undo.sql",
];

async fn skewed() -> (TestDatabase, Client) {
    let db = TestDatabase::new().await;
    let client = db.client().await;
    client.batch_execute(SKEWED).await.unwrap();
    (db, client)
}

fn named(name: &str) -> &'static Statement {
    statements().find(|statement| statement.name == name).unwrap_or_else(|| panic!("{name} is not there"))
}

#[tokio::test]
async fn statements_of_pops_use_the_index_that_their_header_names() {
    let (_db, client) = skewed().await;

    let mut promised = 0;
    for statement in statements().filter(|statement| statement.name.starts_with("messages/pop/")) {
        assert_planned(&client, &SchemaName::default(), statement).await;
        promised += usize::from(statement.planned_index().is_some());
    }

    assert!(promised >= 4, "only {promised} statements promise a plan");
}

/// A claim that reads a whole table is slow in proportion to everything that waits for later, or
/// for nothing.
#[tokio::test]
async fn statements_of_pops_read_no_large_table_from_end_to_end() {
    let (_db, client) = skewed().await;

    for statement in HOT.map(named) {
        let plan = generic_plan(&client, &SchemaName::default(), statement).await;
        for table in ["cursor", "partition_row", "segment", "partition", "queue", "consumer_group"] {
            let scan = format!("Seq Scan on {table}");
            assert!(!plan.contains(&scan), "{} reads all of {table}:\n{plan}", statement.name);
        }
    }
}

/// A function that is called instead is planned again in every call, and hides what it reads.
#[tokio::test]
async fn the_functions_that_claims_share_become_part_of_their_plans() {
    let (_db, client) = skewed().await;

    for statement in ["messages/pop/claim.sql", "messages/pop/claim_plain.sql"].map(named) {
        let plan = generic_plan(&client, &SchemaName::default(), statement).await;
        for function in ["segment_parts", "lease_end", "cursor_of", "partition_row_of"] {
            let call = format!("Function Scan on {function}");
            assert!(statement.sql.contains(function), "{} does not use {function}", statement.name);
            assert!(!plan.contains(&call), "{} calls {function}:\n{plan}", statement.name);
        }
        assert!(plan.contains("segment_pkey"), "{} reads segments otherwise:\n{plan}", statement.name);
    }
}

/// The same for `mark_ready`: its statements are inside a function, so it is run, and the rows it
/// read are counted.
#[tokio::test]
async fn mark_ready_reads_partitions_with_new_messages_and_no_idle_ones() {
    let (_db, client) = skewed().await;
    let scans = "select coalesce(sum(seq_tup_read), 0)::bigint from pg_stat_xact_user_tables
         where schemaname = 'reveille' and relname in ('cursor', 'partition_row', 'partition')";

    client.batch_execute("begin; set local plan_cache_mode = force_generic_plan").await.unwrap();
    let marked: i32 = client.query_one("select reveille.mark_ready(array[1])", &[]).await.unwrap().get(0);
    let read: i64 = client.query_one(scans, &[]).await.unwrap().get(0);
    client.batch_execute("rollback").await.unwrap();

    assert!(marked >= 50, "{marked}");
    assert_eq!(read, 0, "rows read from end to end");
}

/// A young system's plans are made when it has next to nothing, and kept. When it grows at once, a
/// plan that reads tables whole for each partition would hold every consumer up for seconds, until
/// PostgreSQL's next `analyze`.
#[tokio::test]
async fn a_mark_ready_that_was_planned_on_a_young_database_is_fit_for_a_grown_one() {
    static MARK_READY: Statement =
        Statement { name: "test/mark_ready", sql: "select {schema}.mark_ready(array[1, 2])", types: &[] };
    static READ: Statement = Statement {
        name: "test/read",
        sql: "select sum(seq_tup_read)::bigint, sum(idx_tup_fetch)::bigint from pg_stat_xact_user_tables
              where schemaname = 'reveille' and relname in ('cursor', 'partition_row')",
        types: &[],
    };
    let db = TestDatabase::new().await;
    let client = db.client().await;
    let young = "
        alter table reveille.cursor set (autovacuum_enabled = off);
        alter table reveille.partition_row set (autovacuum_enabled = off);
        insert into reveille.queue (name) values ('young'), ('grown');
        insert into reveille.partition (queue, name) values (1, 'a'), (1, 'b');
        insert into reveille.partition_row (partition, queue, next_seq, new_since) select id, queue, 2, now() from reveille.partition;
        insert into reveille.consumer_group (queue, name, mode, settled) values (1, 'g', 'all', true), (2, 'g', 'all', true);
        insert into reveille.cursor (partition, grp) select partition, 1 from reveille.partition_row";
    client.batch_execute(young).await.unwrap();
    client.batch_execute("vacuum analyze").await.unwrap();
    let database = Database::connect(DatabaseOptions::new(db.url())).await.unwrap();
    let mut session = database.connection(Purpose::Dedicated("test")).await.unwrap();
    session.query(&MARK_READY, &[]).await.unwrap();
    let grown = "
        insert into reveille.partition (queue, name) select 2, 'p' || n from generate_series(1, 2000) as n;
        insert into reveille.partition_row (partition, queue, next_seq, new_since)
        select id, queue, 2, now() from reveille.partition where queue = 2;
        insert into reveille.cursor (partition, grp) select partition, 2 from reveille.partition_row where queue = 2";
    client.batch_execute(grown).await.unwrap();

    let transaction = session.transaction().await.unwrap();
    let marked: i32 = transaction.query_opt(&MARK_READY, &[]).await.unwrap().unwrap().get(0);
    let row = transaction.query_opt(&READ, &[]).await.unwrap().unwrap();
    let (whole, by_index): (i64, i64) = (row.get(0), row.get(1));
    transaction.rollback().await.unwrap();

    assert_eq!(marked, 2000);
    assert_eq!(whole, 0, "rows read from end to end");
    assert!(by_index <= 20 * 2000, "{by_index} rows were read for 2000 partitions");
    database.close().await;
}
