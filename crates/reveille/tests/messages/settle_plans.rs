//! Whether the statements of acks find their rows by index, on queues that are large and lopsided.

use reveille::database::{SchemaName, statements};
use reveille::uuid::Uuid;
use reveille_testkit::{TestDatabase, assert_planned, generic_plan};

/// 100,000 idle partitions of one queue with two groups; a few leases; one partition has most of
/// the log.
const SKEWED: &str = "
    insert into reveille.queue (name) select 'q' || n from generate_series(1, 100) as n;
    insert into reveille.partition (queue, name) select 1, 'p' || n from generate_series(1, 100000) as n;
    insert into reveille.partition_row (partition, queue, next_seq) select id, queue, 2 from reveille.partition;
    insert into reveille.consumer_group (queue, name, mode, settled) select 1, 'g' || n, 'all', true from generate_series(1, 2) n;
    insert into reveille.cursor (partition, grp, committed, upto, nonce, lease_until)
    select partition, 1 + partition % 2, 1, 1, gen_random_uuid(), case when partition % 500 = 0 then now() end
    from reveille.partition_row;
    insert into reveille.segment (partition, last_seq, n, bytes, at, ids, payloads)
    select case when n % 3 = 0 then n else 1 end, n, 1, 4, now(), array[gen_random_uuid()], array['body'::bytea]
    from generate_series(1, 100000) as n;
    insert into reveille.trace (partition, transaction_id, body) select n, n::text, '' from generate_series(1, 20000) as n;
    insert into reveille.dead_letter (queue, partition, grp, seq, message_id, transaction_id, payload, pushed_at, failures, deliveries)
    select 1, 1 + n % 1000, 1, n, gen_random_uuid(), n::text, '', now(), 1, 1 from generate_series(1, 20000) as n;
    analyze";

#[tokio::test]
async fn acks_and_lookups_find_their_rows_by_index() {
    let db = TestDatabase::new().await;
    let client = db.client().await;
    client.batch_execute(SKEWED).await.unwrap();
    let ours =
        |name: &str| ["settle/", "browse/", "trace/"].iter().any(|step| name.starts_with(&format!("messages/{step}")));

    let mut promised = 0;
    for statement in statements().filter(|statement| ours(statement.name)) {
        assert_planned(&client, &SchemaName::default(), statement).await;
        let Some(_) = statement.planned_index() else { continue };
        promised += 1;
        let plan = generic_plan(&client, &SchemaName::default(), statement).await;
        for table in ["cursor", "partition_row", "segment", "partition", "dead_letter", "trace"] {
            assert!(
                !plan.contains(&format!("Seq Scan on {table}")),
                "{} reads all of {table}:\n{plan}",
                statement.name
            );
        }
    }

    assert!(promised >= 6, "only {promised} statements promise a plan");
}

/// The statements of a settlement are inside a function, so it is run and what it read is counted.
#[tokio::test]
async fn settling_a_failure_reads_nothing_from_end_to_end() {
    let db = TestDatabase::new().await;
    let client = db.client().await;
    client.batch_execute(SKEWED).await.unwrap();
    let lease =
        "update reveille.cursor set committed = 0, leased_through = 1, lease_until = now() + interval '1 minute'
         where partition = 500 returning grp, nonce";
    let row = client.query_one(lease, &[]).await.unwrap();
    let (group, nonce): (i32, Uuid) = (row.get(0), row.get(1));

    client.batch_execute("begin; set local plan_cache_mode = force_generic_plan").await.unwrap();
    let settle =
        "select said from reveille.settle(array[500], array[$1::int], array[$2::uuid], array[0::bigint], array['dlq'],
         array['no'], array[false])";
    let said: String = client.query_one(settle, &[&group, &nonce]).await.unwrap().get(0);
    let scans = "select coalesce(sum(seq_tup_read), 0)::bigint from pg_stat_xact_user_tables
         where schemaname = 'reveille' and relname in ('cursor', 'partition_row', 'segment', 'dead_letter')";
    let read: i64 = client.query_one(scans, &[]).await.unwrap().get(0);
    client.batch_execute("rollback").await.unwrap();

    assert_eq!((said.as_str(), read), ("settled", 0));
}
