//! Whether the plans are as the headers promise, on a store that is large and lopsided.

use reveille::database::{Database, DatabaseOptions, SchemaName};
use reveille_testkit::{TestDatabase, assert_planned, generic_plan};
use tokio_postgres::Client;

use super::{ALL, CLAIM_ACTIVITIES, CLAIM_PLAIN, CLAIM_TURNS, RELAY_ACTIVITY};

/// 100,000 rows in each large table. Nearly everything lies in the future or is done; one instance
/// has half of all events; one session has most activities.
const SKEWED: &str = "
    insert into {schema}.mailbox (instance_id, known, locked_until, lock_token)
    select 'i' || n, true, case when n % 100 = 0 then now() + interval '1 hour' end,
        case when n % 100 = 0 then 't' || n end
    from generate_series(1, 20000) as n;
    insert into {schema}.instance (instance_id, name, version, current_execution_id, parent_instance_id)
    select 'i' || n, 'Order', '1.0.0', 1, case when n % 50 = 0 then 'i1' end from generate_series(1, 100000) as n;
    insert into {schema}.execution (instance_id, execution_id, status)
    select 'i' || n, 1, case when n % 100 = 0 then 'Running' else 'Completed' end from generate_series(1, 100000) as n;
    insert into {schema}.history (instance_id, execution_id, event_id, event)
    select case when n % 2 = 0 then 'i1' else 'i' || n end, 1, n, 'an event' from generate_series(1, 100000) as n;
    insert into {schema}.message (instance_id, work_item, visible_at)
    select 'i' || 1 + n % 20000, 'a message', now() + case when n % 1000 = 0 then interval '-1 s' else interval '1 day' end
    from generate_series(1, 100000) as n;
    insert into {schema}.session (session_id, owner_id, locked_until, last_activity_at)
    select 's' || n, 'o' || n % 10, now() + interval '1 hour', now() from generate_series(1, 1000) as n;
    insert into {schema}.activity (instance_id, execution_id, activity_id, session_id, work_item, due_at, lock_token)
    select 'i' || n, 1, n, case when n % 10 < 8 then 's1' end, 'an activity',
        now() + case when n % 1000 = 0 then interval '-1 s' else interval '1 day' end,
        case when n % 3 = 0 then 'a' || n end
    from generate_series(1, 100000) as n;
    analyze";

async fn skewed(test: &TestDatabase) -> (Client, SchemaName) {
    let schema: SchemaName = "store".parse().unwrap();
    let database = Database::connect(DatabaseOptions::new(test.url())).await.unwrap();
    database.with_schema(schema.clone()).unwrap().migrate_from(&crate::schema::SOURCE).await.unwrap();
    let client = test.client().await;
    client.batch_execute(&SKEWED.replace("{schema}", "store")).await.unwrap();
    (client, schema)
}

#[tokio::test]
async fn statements_whose_header_names_an_index_use_it_on_a_large_store() {
    let test = TestDatabase::empty().await;
    let (client, schema) = skewed(&test).await;

    for statement in ALL {
        assert_planned(&client, &schema, statement).await;
    }

    let promised = ALL.iter().filter(|statement| statement.planned_index().is_some()).count();
    assert!(promised >= 5, "only {promised} statements promise a plan");
}

/// A claim that reads a whole table is slow in proportion to everything that waits for later.
#[tokio::test]
async fn claims_read_no_table_from_end_to_end() {
    let test = TestDatabase::empty().await;
    let (client, schema) = skewed(&test).await;

    for statement in [&CLAIM_TURNS, &CLAIM_ACTIVITIES, &CLAIM_PLAIN, &RELAY_ACTIVITY] {
        let plan = generic_plan(&client, &schema, statement).await;
        for table in ["message", "mailbox", "activity", "history", "execution"] {
            let scan = format!("Seq Scan on {table} ");
            assert!(!plan.contains(&scan), "{} reads all of {table}:\n{plan}", statement.name);
        }
    }
}
