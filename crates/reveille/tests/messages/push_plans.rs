//! Whether the statements of pushes are planned as their headers promise, with large tables.

use reveille::database::{SchemaName, Statement, statements};
use reveille_testkit::{TestDatabase, assert_planned, generic_plan};
use tokio_postgres::Client;

use crate::support::rows_and_blocks;

const MUCH: &str = "
    insert into reveille.queue (name, namespace) select 'q' || n, 'n' || n % 10 from generate_series(1, 2000) as n;
    insert into reveille.partition (queue, name)
    select case when n % 10 < 8 then 1 else 1 + n % 2000 end, 'p' || n from generate_series(1, 50000) as n;
    insert into reveille.partition_row (partition, queue) select id, queue from reveille.partition;
    insert into reveille.dedup (partition, key, id, until)
    select 1 + n % 50000, gen_random_uuid(), gen_random_uuid(), now() from generate_series(1, 50000) as n;
    insert into reveille.dedup_run (partition, low, high, ids, until)
    select partition, key, key, array[id], until from reveille.dedup;
    insert into reveille.dedup_span (partition, low, high, first_seq, last_seq, until)
    select partition, key, key, 1, 32, until from reveille.dedup;
    insert into reveille.outbox (queue, partition, message_id, payload)
    select 'q1', 'p' || n, gen_random_uuid(), 'x' from generate_series(1, 20000) as n;
    insert into reveille.segment (partition, last_seq, n, bytes, at, ids, payloads)
    select 1 + n % 50000, n, 1, 1, now(), array[gen_random_uuid()], array['x'::bytea] from generate_series(1, 50000) as n;
    analyze";

async fn much() -> (TestDatabase, Client) {
    let db = TestDatabase::new().await;
    let client = db.client().await;
    client.batch_execute(MUCH).await.unwrap();
    (db, client)
}

fn of_pushes() -> impl Iterator<Item = &'static Statement> {
    let steps = ["messages/push/", "messages/queue/", "messages/outbox/"];
    statements().filter(move |statement| steps.iter().any(|step| statement.name.starts_with(step)))
}

/// Which would read a small table as a whole, and must not read a large one so.
const LARGE_ONLY: [(&str, &str); 4] = [
    ("messages/push/duplicates.sql", "dedup_pkey"),
    ("messages/push/happened.sql", "segment_pkey"),
    ("messages/queue/find.sql", "queue_name_key"),
    ("messages/queue/list.sql", "queue_name_key"),
];

#[tokio::test]
async fn statements_of_pushes_use_the_index_that_their_header_names() {
    let (_db, client) = much().await;

    let mut promised = 0;
    for statement in of_pushes() {
        assert_planned(&client, &SchemaName::default(), statement).await;
        promised += usize::from(statement.planned_index().is_some());
    }
    for (name, index) in LARGE_ONLY {
        let statement = of_pushes().find(|statement| statement.name == name).unwrap();
        let plan = generic_plan(&client, &SchemaName::default(), statement).await;
        assert!(plan.contains(index), "{name} does not use {index}:\n{plan}");
    }

    assert!(promised >= 6, "only {promised} statements promise a plan");
}

#[tokio::test]
async fn no_flush_reads_a_whole_table() {
    let (_db, client) = much().await;

    for name in ["messages/push/append.sql", "messages/push/lock.sql", "messages/push/duplicates.sql"] {
        let statement = of_pushes().find(|statement| statement.name == name).unwrap();
        let plan = generic_plan(&client, &SchemaName::default(), statement).await;
        for table in ["partition_row", "outbox", "dedup", "segment", "partition"] {
            assert!(!plan.contains(&format!("Seq Scan on {table} ")), "{name}: {plan}");
        }
    }
}

/// The plan of a caller does not show what a function reads.
#[tokio::test]
async fn the_search_for_a_growing_id_reads_little_of_large_tables() {
    let (_db, client) = much().await;
    client
        .batch_execute(
            "update reveille.partition_row set key_high = 'ffffffff-ffff-7fff-bfff-ffffffffffff', span_from = 1, span_to = 100000,
               span_low = '00000000-0000-7000-8000-000000000000', span_high = 'ffffffff-ffff-7fff-bfff-ffffffffffff'
             where partition < 100",
        )
        .await
        .unwrap();
    let asked = "select reveille.growing_seen(array[1, 2, 3], (select array_agg(key) from
        (select gen_random_uuid() as key from generate_series(1, 3)) as given))";

    rows_and_blocks(&client, asked).await;
    let (found, blocks) = rows_and_blocks(&client, asked).await;

    assert_eq!(found, 0);
    assert!((1..100).contains(&blocks), "{blocks} blocks were read for three ids");
}
