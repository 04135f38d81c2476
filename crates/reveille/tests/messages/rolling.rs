//! An upgrade that rolls: the schema of the next version is applied while nodes of this one work,
//! and they go on.

use reveille::database::{Database, DatabaseError, DatabaseOptions};
use reveille::messages::Pop;
use reveille::service::{Function, Migration, SchemaSource};
use reveille_testkit::TestDatabase;

use crate::pop_kit::{Node, none, number, pop_queue, texts};
use crate::support::{Fixture, push, queue, soon};

/// As a later release might: new columns in tables that every push and pop uses, and a new table.
const SAMPLE: &str = "
    alter table {schema}.queue add column sample text not null default 'x';
    alter table {schema}.partition_row add column sample int;
    alter table {schema}.cursor add column sample int not null default 0;
    create table {schema}.sample (id bigint primary key);";

macro_rules! later {
    ($($migration:expr),*) => {
        SchemaSource {
            migrations: &[
                Migration { version: 8, name: "engine", sql: include_str!("../../sql/migrations/0008_engine.sql") },
                Migration { version: 9, name: "messages", sql: include_str!("../../sql/migrations/0009_messages.sql") },
                Migration { version: 10, name: "jobs", sql: include_str!("../../sql/migrations/0010_jobs.sql") },
                $($migration),*
            ],
            functions: &[],
            // Older than the functions that are there, so that they stay.
            release: "0.0.0",
        }
    };
}

const ELEVENTH: Migration = Migration { version: 11, name: "sample", sql: SAMPLE };
const TWELFTH: Migration =
    Migration { version: 12, name: "more", sql: "create table {schema}.more (id bigint primary key)" };
static NEXT: SchemaSource = later!(ELEVENTH);
static AFTER_NEXT: SchemaSource = later!(ELEVENTH, TWELFTH);

#[tokio::test]
async fn nodes_go_on_while_the_schema_of_the_next_version_is_applied() {
    let it = Fixture::new().await;
    let node = Node::on(&it.db).await.proven().await;
    push(&it.messages, "mail", "1").await;
    let first = pop_queue(&node.messages, "mail", 1).await;
    node.messages.complete(&first).await;
    none(&node.messages, "mail").await;
    let waiting = node.joined(Pop::queue(queue("mail"))).await;

    let applied = soon(it.database.migrate_from(&NEXT)).await.unwrap();
    push(&it.messages, "mail", "2").await;

    assert_eq!(applied.migrations, [(11, "sample")]);
    let second = soon(waiting).await.unwrap().expect("it is woken");
    assert_eq!(texts(&second), ["2"]);
    assert!(soon(node.messages.complete(&second)).await.pop().unwrap().is_ok());
    push(&it.messages, "mail", "3").await;
    assert_eq!(texts(&pop_queue(&node.messages, "mail", 1).await), ["3"]);
}

#[tokio::test]
async fn a_node_of_this_version_starts_on_the_next_schema_and_not_on_the_one_after() {
    let it = Fixture::new().await;
    let functions = "select count(*) from reveille.function";
    let before = number(&it.client().await, functions).await;
    soon(it.database.migrate_from(&NEXT)).await.unwrap();

    let started = soon(Database::connect(DatabaseOptions::new(it.db.url()))).await.unwrap();
    let changed = soon(started.migrate()).await.unwrap();
    soon(started.check_schema()).await.unwrap();
    assert!(changed.migrations.is_empty() && changed.functions.is_empty(), "{changed:?}");
    push(&it.node().await, "mail", "1").await;
    assert_eq!(number(&it.client().await, functions).await, before);

    soon(it.database.migrate_from(&AFTER_NEXT)).await.unwrap();
    assert!(matches!(soon(started.check_schema()).await, Err(DatabaseError::SchemaTooNew { found: 12, .. })));
    assert!(matches!(soon(started.migrate()).await, Err(DatabaseError::SchemaTooNew { found: 12, .. })));
}

macro_rules! answer {
    ($said:literal) => {
        Function {
            name: "answer",
            sql: concat!(
                "create or replace function {schema}.answer() returns text language plpgsql as ",
                "$reveille$ begin return '",
                $said,
                "'; end $reveille$; comment on function {schema}.answer() is 'Reveille: answers'"
            ),
        }
    };
}

const ONE: Migration = Migration { version: 5, name: "one", sql: "create table {schema}.one (id int)" };
const TWO: Migration = Migration { version: 6, name: "two", sql: "alter table {schema}.one add column b int" };
static OLD: SchemaSource = SchemaSource { migrations: &[ONE], functions: &[answer!("old")], release: "1.9.0" };
static NEW: SchemaSource = SchemaSource { migrations: &[ONE, TWO], functions: &[answer!("new")], release: "1.10.0" };

/// Of any crate's schema, with functions that the next version replaces.
#[tokio::test]
async fn a_program_of_the_version_before_leaves_what_the_next_one_made() {
    let db = TestDatabase::empty().await;
    let database = soon(Database::connect(DatabaseOptions::new(db.url()))).await.unwrap();
    let sample = database.with_schema("sample".parse().unwrap()).unwrap();
    soon(sample.migrate_from(&OLD)).await.unwrap();

    let new = soon(sample.migrate_from(&NEW)).await.unwrap();
    let old = soon(sample.migrate_from(&OLD)).await.unwrap();

    assert_eq!((new.migrations, new.functions), (vec![(6, "two")], vec!["answer".to_owned()]));
    assert!(old.migrations.is_empty() && old.functions.is_empty(), "{old:?}");
    let answer: String = db.client().await.query_one("select sample.answer()", &[]).await.unwrap().get(0);
    assert_eq!(answer, "new");
    database.close().await;
}
