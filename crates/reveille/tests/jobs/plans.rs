//! Whether the plans of the hot statements are as their headers promise, on a queue that is deep
//! and lopsided.

use reveille::database::{SchemaName, Statement, statements};
use reveille_testkit::{TestDatabase, assert_planned, generic_plan};
use tokio_postgres::Client;

/// 100,000 jobs, nearly all of one queue, a third of them for later, some running.
const SKEWED: &str = "
    insert into reveille.job_body (kind, queue, priority, run_at, max_attempts, args)
    select 'k' || n % 7, case when n % 10 < 9 then 'default' else 'q' || n % 100 end, n % 10,
           now() + case when n % 3 = 0 then interval '1 hour' else interval '-1 hour' end, 4, '{}'
    from generate_series(1, 100000) as n;
    insert into reveille.job (id, due_at, max_attempts, priority, queue, nonce, worker)
    select id, run_at, max_attempts, priority, queue, case when id % 1000 = 0 then id end, case when id % 1000 = 0 then 'w' end
    from reveille.job_body;
    analyze";

const HOT: [&str; 6] = [
    "jobs/claim/take.sql",
    "jobs/claim/next.sql",
    "jobs/settle/complete.sql",
    "jobs/settle/renew.sql",
    "jobs/settle/progress.sql",
    "jobs/admin/cancel.sql",
];

async fn skewed() -> (TestDatabase, Client) {
    let db = TestDatabase::new().await;
    let client = db.client().await;
    client.batch_execute(SKEWED).await.unwrap();
    (db, client)
}

#[tokio::test]
async fn statements_of_jobs_use_the_index_that_their_header_names() {
    let (_db, client) = skewed().await;

    let mut promised = 0;
    for statement in statements().filter(|statement| statement.name.starts_with("jobs/")) {
        assert_planned(&client, &SchemaName::default(), statement).await;
        promised += usize::from(statement.planned_index().is_some());
    }

    assert!(promised >= 9, "only {promised} statements promise a plan");
}

/// A claim that reads a whole table is slow in proportion to everything that waits.
#[tokio::test]
async fn hot_statements_of_jobs_read_no_large_table_from_end_to_end() {
    let (_db, client) = skewed().await;
    let named = |name: &str| -> &'static Statement {
        statements().find(|statement| statement.name == name).unwrap_or_else(|| panic!("{name} is not there"))
    };

    for statement in HOT.map(named) {
        let plan = generic_plan(&client, &SchemaName::default(), statement).await;
        for table in ["job", "job_body", "job_done"] {
            let scan = |line: &str| {
                line.contains(&format!("Seq Scan on {table} ")) || line.ends_with(&format!("Seq Scan on {table}"))
            };
            assert!(!plan.lines().any(scan), "{} reads all of {table}:\n{plan}", statement.name);
        }
    }
}
