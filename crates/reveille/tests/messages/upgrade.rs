//! An upgrade beside nodes that go on working.

use reveille::database::{Database, DatabaseOptions};
use reveille::messages::PushOutcome;
use reveille_testkit::TestDatabase;
use uuid::Uuid;

use crate::pop_kit::{number, spawn};
use crate::support::{Fixture, item, soon};

/// As the schema was before cursors and heads lost their unique keys.
const BEFORE_PLACES: &str = "
    drop trigger make_once on reveille.cursor;
    drop trigger forget_made on reveille.cursor;
    drop function reveille.make_cursor_once, reveille.forget_cursor_made;
    drop table reveille.cursor_made;
    drop index reveille.head_place, reveille.cursor_place;
    alter table reveille.head add constraint head_pkey primary key (partition);
    alter table reveille.cursor add constraint cursor_pkey primary key (partition, grp);
    delete from reveille.migration where version = 6";

const WAITING: &str =
    "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";

/// A push holds the heads; a claim holds the cursors and wants the heads, behind the migration; then the push ends, the
/// migration has the heads and wants the cursors.
#[tokio::test]
async fn a_migration_that_wants_all_cursors_gives_way_to_whoever_holds_them() {
    let db = TestDatabase::new().await;
    let watcher = db.client().await;
    watcher.batch_execute(BEFORE_PLACES).await.unwrap();
    let (push, claim) = (db.client().await, db.client().await);
    push.batch_execute("begin; lock table reveille.head in row exclusive mode").await.unwrap();
    claim.batch_execute("begin; lock table reveille.cursor in row exclusive mode").await.unwrap();

    let database = soon(Database::connect(DatabaseOptions::new(db.url()))).await.unwrap();
    let migrating = spawn(async move { database.migrate().await });
    soon(async { while number(&watcher, WAITING).await < 1 {} }).await;
    let claiming = spawn(async move {
        claim.batch_execute("lock table reveille.head in row exclusive mode").await?;
        claim.batch_execute("commit").await
    });
    soon(async { while number(&watcher, WAITING).await < 2 && !claiming.is_finished() {} }).await;
    push.batch_execute("commit").await.unwrap();

    soon(claiming).await.unwrap().expect("the claim goes on");
    assert_eq!(soon(migrating).await.unwrap().expect("the migration is done").migrations, [(6, "places")]);
}

/// As the schema was before the log remembered ids that grow: each is a run.
const BEFORE_SPANS: &str = "
    insert into reveille.dedup_run (partition, low, high, ids, until)
    select partition, name::uuid, name::uuid, array[id], at + interval '1 hour'
    from reveille.segment cross join lateral unnest(ids, transaction_ids) as item (id, name);
    alter table reveille.head drop column key_high, drop column span_from, drop column span_low, drop column span_high;
    drop table reveille.dedup_span;
    delete from reveille.migration where version = 7";

#[tokio::test]
async fn ids_from_before_the_log_remembered_them_are_still_known() {
    let fixture = Fixture::new().await;
    let ids: Vec<String> = (0..3).map(|_| Uuid::now_v7().to_string()).collect();
    let sent = || ids.iter().map(|id| item("mail", "a", "x").transaction_id(id)).collect();
    let first: Vec<_> =
        soon(fixture.messages.push(sent())).await.into_iter().map(|pushed| pushed.unwrap().id).collect();
    fixture.client().await.batch_execute(BEFORE_SPANS).await.unwrap();

    assert_eq!(soon(fixture.database.migrate()).await.unwrap().migrations, [(7, "dedup_spans")]);
    let again = soon(fixture.node().await.push(sent())).await;

    for (again, first) in again.into_iter().zip(first) {
        assert_eq!(again.unwrap().outcome, PushOutcome::Duplicate { of: first });
    }
}
