//! A function that another role put into `public` never runs as us, whatever its name.
//!
//! PostgreSQL prefers a function that fits exactly to one of `pg_catalog` that fits any array: any
//! role that may create in `public` could make a caller run code, if names were looked up there.

use std::fmt::Write;
use std::sync::Arc;

use reveille::database::{Database, DatabaseOptions, SchemaName, StatementMode, migration_script};
use reveille::jobs::{Job, JobEvent, Jobs, JobsOptions, NewJob, Outcome, Settled, Unique, Worker};
use reveille::messages::{Changes, Messages, MessagesOptions, PartitionName, Pop, PushItem, QueueList, QueueName};
use reveille_testkit::{Events, LoginSettings, Pooler, TestDatabase};
use serde_json::{Value, json};
use tokio_postgres::Client;

use crate::support::{migrated, options, soon};

const TYPES: [&str; 10] =
    ["text", "uuid", "int4", "int8", "int2", "bytea", "bool", "float8", "timestamptz", "interval"];

/// Puts functions and operators into `public` that fit better than those of `pg_catalog`, and count
/// their calls: a sequence keeps the count of a transaction that is rolled back.
async fn plant(client: &Client) {
    let mut sql = String::from("create sequence public.called;");
    for of in TYPES {
        let functions = [
            ("unnest", format!("a {of}[]"), format!("setof {of}"), "return query select pg_catalog.unnest(a)"),
            ("cardinality", format!("a {of}[]"), "int".into(), "return pg_catalog.cardinality(a)"),
            ("array_length", format!("a {of}[], b int"), "int".into(), "return pg_catalog.array_length(a, b)"),
            ("array_fill", format!("a {of}, b int[]"), format!("{of}[]"), "return pg_catalog.array_fill(a, b)"),
            ("array_append", format!("a {of}[], b {of}"), format!("{of}[]"), "return pg_catalog.array_append(a, b)"),
            ("array_cat", format!("a {of}[], b {of}[]"), format!("{of}[]"), "return pg_catalog.array_cat(a, b)"),
            ("num_nulls", format!("a {of}"), "int".into(), "return pg_catalog.num_nulls(a)"),
        ];
        for (name, arguments, result, body) in functions {
            let _ = write!(
                sql,
                "create function public.{name}({arguments}) returns {result} language plpgsql as $$ begin
                   perform pg_catalog.nextval('public.called'); {body}; end $$;"
            );
        }
        let _ = write!(
            sql,
            "create operator public.|| (leftarg = {of}[], rightarg = {of}[], function = public.array_cat);
             create operator public.|| (leftarg = {of}[], rightarg = {of}, function = public.array_append);"
        );
    }
    client.batch_execute(&sql).await.unwrap();
}

/// How often one of them ran.
async fn calls(client: &Client) -> i64 {
    let called = "select coalesce(pg_catalog.pg_sequence_last_value('public.called'), 0)";
    client.query_one(called, &[]).await.unwrap().get(0)
}

fn item(transaction: &str) -> PushItem {
    let queue = QueueName::new("mail").unwrap();
    PushItem::new(queue, b"{}".to_vec()).partition(PartitionName::new("p").unwrap()).transaction_id(transaction)
}

async fn push_pop_and_acknowledge(database: &Database) {
    let messages = Messages::new(database, MessagesOptions::default());
    let queue = QueueName::new("mail").unwrap();
    for transaction in ["a", "a", "b", "01890000-0000-7000-8000-000000000001"] {
        soon(messages.push_one(item(transaction))).await.unwrap();
    }
    let batch = soon(messages.pop(Pop::queue(queue.clone()).batch(2))).await.unwrap().expect("messages are there");
    for settled in soon(messages.complete(&batch)).await {
        settled.unwrap();
    }
    soon(messages.transaction(Changes::new().push(item("c")).push(item("d")))).await.unwrap();
    soon(messages.pop(Pop::queue(queue).auto_ack())).await.unwrap().expect("one is left");
    soon(messages.queues(&QueueList::default())).await.unwrap();
    messages.close().await;
}

async fn enqueue_claim_and_settle(database: &Database) {
    let events = Events::new();
    let recorded = events.clone();
    let observer = Arc::new(move |event: &JobEvent| recorded.record(event.clone()));
    let jobs = Jobs::open(database, JobsOptions::default().observer(observer));
    let worker = Worker::builder(&jobs)
        .handler::<Value, _>("ok", |_, _: Job| async {})
        .handler::<Value, _>("no", |_, _: Job| async { Err::<(), _>("it cannot") });
    let worker = soon(worker.start()).await.unwrap();
    soon(jobs.enqueue(NewJob::new("ok", &json!({})).unwrap())).await.unwrap();
    soon(jobs.enqueue(NewJob::new("ok", &json!({})).unwrap().unique(Unique::by_key("k")))).await.unwrap();
    soon(jobs.enqueue(NewJob::new("no", &json!({})).unwrap().tags(["a", "b"]))).await.unwrap();
    events.until(|event| matches!(event, JobEvent::Completed { .. })).await;
    events.until(|event| matches!(event, JobEvent::Failed { .. })).await;
    drop(worker);
    soon(jobs.queues()).await.unwrap();
    jobs.close().await;
}

/// On the caller's own session, whose path is the usual one.
async fn in_transactions_of_the_caller(db: &TestDatabase, database: &Database) {
    let mut client = db.client().await;
    let messages = Messages::new(database, MessagesOptions::default());
    let jobs = Jobs::open(database, JobsOptions::default());
    let transaction = client.transaction().await.unwrap();
    messages.push_in(&transaction, vec![item("e"), item("f")]).await.unwrap();
    let plain = NewJob::new("copied", &json!({})).unwrap();
    let unique = plain.clone().unique(Unique::by_key("z"));
    jobs.enqueue_in(&transaction, vec![plain.clone(), unique.clone()]).await.unwrap();
    jobs.enqueue_copy_in(&transaction, vec![plain, unique]).await.unwrap();
    transaction.commit().await.unwrap();
    settle_in_a_transaction_of_the_caller(db, &jobs).await;
    messages.close().await;
    jobs.close().await;
}

async fn settle_in_a_transaction_of_the_caller(db: &TestDatabase, jobs: &Jobs) {
    let done = Events::new();
    let (recorded, url) = (done.clone(), db.url());
    let worker = Worker::builder(jobs).handler::<Value, _>("copied", move |_, job: Job| {
        let (recorded, url) = (recorded.clone(), url.clone());
        async move {
            let client = reveille_testkit::connect(&url).await;
            let settled = job.settle_in(&client, Outcome::Done).await.unwrap();
            recorded.record(settled);
        }
    });
    let worker = soon(worker.start()).await.unwrap();
    assert_eq!(done.until(|_| true).await, Settled::Recorded);
    drop(worker);
}

/// The calls of a program in another language.
async fn by_sql(client: &Client) {
    for sql in [
        "select reveille.push('mail', '{}'), reveille.push('mail', '{}'::json), reveille.push('mail', '{}'::jsonb)",
        "select reveille.push('mail', '\\x00'::bytea, transaction_id => 'g')",
        "select reveille.push_many('mail', array['1', '2'])",
        "select reveille.push_many('mail', array['1', '2']::json[])",
        "select reveille.enqueue('by-sql', '{}', queue => 'other', tags => array['a'], unique_key => 'u', unique_scope => 'kind',
           metadata => '{}', backoff => 'list:1,2')",
        "select reveille.enqueue('by-sql', '{}'::json, queue => 'other')",
        "select reveille.enqueue_many('[{\"kind\": \"by-sql\", \"queue\": \"other\", \"tags\": [\"a\"]}]')",
        "select reveille.version()",
        // Held as a worker holds it; then every way to settle it.
        "update reveille.job set nonce = 7, epoch = 1, worker = 'w', attempt = 1 where queue = 'other'",
        "select reveille.complete(id || '.1.7') from reveille.job where queue = 'other' order by id limit 1",
        "select reveille.snooze(id || '.1.7', '1 h') from reveille.job where queue = 'other' and nonce = 7 order by id limit 1",
        "select reveille.fail(id || '.1.7', 'c', 'm') from reveille.job where queue = 'other' and nonce = 7",
    ] {
        client.batch_execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_put_into_public_is_not_run_by_a_program_with_sessions_of_its_own() {
    let db = TestDatabase::empty().await;
    let client = db.client().await;
    plant(&client).await;

    let database = migrated(options(&db)).await;
    push_pop_and_acknowledge(&database).await;
    enqueue_claim_and_settle(&database).await;
    in_transactions_of_the_caller(&db, &database).await;
    database.close().await;

    assert_eq!(calls(&client).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_put_into_public_is_not_run_through_a_pooler() {
    let db = TestDatabase::empty().await;
    let Some(pooler) = Pooler::before(&db, 3, LoginSettings::Refused) else { return };
    let client = db.client().await;
    plant(&client).await;
    let pooled = DatabaseOptions::new(pooler.url()).listen_url(db.url()).statement_mode(StatementMode::Pooled);

    let database = migrated(pooled).await;
    push_pop_and_acknowledge(&database).await;
    enqueue_claim_and_settle(&database).await;
    database.close().await;

    assert_eq!(calls(&client).await, 0);
}

#[tokio::test]
async fn what_others_put_into_public_is_not_run_by_functions_that_programs_call() {
    let db = TestDatabase::empty().await;
    let client = db.client().await;
    plant(&client).await;
    client.batch_execute(&migration_script(&SchemaName::default(), 0)).await.unwrap();

    by_sql(&client).await;

    assert_eq!(calls(&client).await, 0);
}

/// What a session calls whose path is not ours: programs in other languages, and the library in a
/// caller's transaction.
const CALLED_BY_OTHERS: [&str; 12] = [
    "announce_jobs",
    "complete",
    "enqueue",
    "enqueue_items",
    "enqueue_many",
    "fail",
    "push",
    "push_items",
    "push_many",
    "settle_jobs",
    "snooze",
    "version",
];

#[tokio::test]
async fn functions_that_others_call_pin_their_path_and_inner_ones_write_names_out() {
    let db = TestDatabase::new().await;
    let client = db.client().await;
    let known = "select distinct proname from pg_proc where pronamespace = 'pg_catalog'::regnamespace";
    let known: Vec<String> = client.query(known, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
    let ours = "select proname, prosrc, coalesce(proconfig::text, '') from pg_proc
                where pronamespace = 'reveille'::regnamespace";

    for row in client.query(ours, &[]).await.unwrap() {
        let (name, source, settings): (&str, &str, &str) = (row.get(0), row.get(1), row.get(2));
        let pinned = settings.contains("search_path=pg_catalog, pg_temp");
        assert_eq!(pinned, CALLED_BY_OTHERS.contains(&name), "{name} has the settings {settings}");
        let bare: Vec<&str> = bare_calls(source).filter(|call| known.iter().any(|known| known == call)).collect();
        assert!(bare.is_empty(), "{name} calls {bare:?} without pg_catalog");
    }
}

#[test]
fn every_function_that_the_documents_call_pins_its_path() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let pages = std::fs::read_dir(format!("{root}/docs")).unwrap().map(|entry| entry.unwrap().path());
    let pages = pages.filter(|path| path.extension().is_some_and(|is| is == "md"));

    for page in pages.chain([format!("{root}/README.md").into()]) {
        let text = std::fs::read_to_string(&page).unwrap();
        let calls = text.split("select reveille.").skip(1).filter_map(|rest| rest.split_once('('));
        for (name, _) in calls {
            assert!(CALLED_BY_OTHERS.contains(&name), "{} calls {name}", page.display());
        }
    }
}

/// Words right before a parenthesis that no schema precedes; comments, texts and what is syntax
/// left out.
fn bare_calls(source: &str) -> impl Iterator<Item = &str> {
    const SYNTAX: [&str; 9] =
        ["coalesce", "exists", "extract", "greatest", "least", "nullif", "overlay", "position", "bit"];
    let code = source.lines().map(|line| line.split("--").next().unwrap_or_default());
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let calls = code.flat_map(move |line| {
        line.match_indices('(').filter_map(move |(at, _)| {
            let before = line[..at].trim_end_matches(is_word);
            let name = &line[before.len()..at];
            // Of several arrays `unnest` is syntax as well, and cannot be written with a schema.
            let mark_ready = name == "unnest" && is_of_several(&line[at..]);
            (!name.is_empty() && !before.ends_with('.') && !mark_ready).then_some(name)
        })
    });
    calls.filter(|name| !SYNTAX.contains(name))
}

/// Whether a comma stands in this parenthesis itself, or the parenthesis goes on in the next line.
fn is_of_several(call: &str) -> bool {
    let mut depth = 0;
    for c in call.chars() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' if depth == 1 => return false,
            ')' | ']' => depth -= 1,
            ',' if depth == 1 => return true,
            _ => {}
        }
    }
    true
}
