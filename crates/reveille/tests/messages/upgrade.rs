//! An upgrade beside nodes that go on working.

use reveille::database::{Database, DatabaseOptions};
use reveille::messages::PushOutcome;
use reveille_testkit::TestDatabase;
use tokio_postgres::Client;
use tokio_postgres::types::ToSql;
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
    alter table reveille.head
      drop column key_high, drop column key_seq, drop column span_from, drop column span_to, drop column span_low,
      drop column span_high;
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

/// Nodes of the version before keep their own statements until they are replaced.
#[tokio::test]
async fn nodes_from_before_and_after_know_each_others_ids() {
    let fixture = Fixture::new().await;
    let before = NodeBefore::of(&fixture).await;
    let sent = |id: &Uuid| item("mail", "a", "x").transaction_id(id.to_string());
    let ids: Vec<Uuid> = (0..4).map(|_| Uuid::now_v7()).collect();

    let first = soon(fixture.messages.push_one(sent(&ids[0]))).await.unwrap();
    assert_eq!(before.push(ids[0]).await, Err("RV001".into()));
    assert_eq!(before.seen(ids[0]).await, [first.id.0]);
    assert_eq!(before.push(ids[2]).await, Ok(1));

    let again = soon(fixture.messages.push_one(sent(&ids[2]))).await.unwrap();
    assert!(again.is_duplicate(), "pushed by the node from before, and greater than all that this one knows");
    assert!(!soon(fixture.messages.push_one(sent(&ids[1]))).await.unwrap().is_duplicate());
    assert!(!soon(fixture.messages.push_one(sent(&ids[3]))).await.unwrap().is_duplicate());
    assert_eq!(before.push(ids[1]).await, Err("RV001".into()));
    assert_eq!(before.push(ids[3]).await, Err("RV001".into()));
    for id in &ids {
        assert!(soon(fixture.messages.push_one(sent(id))).await.unwrap().is_duplicate(), "{id}");
    }
}

struct NodeBefore {
    client: Client,
    partition: i32,
}

impl NodeBefore {
    async fn of(fixture: &Fixture) -> Self {
        soon(fixture.messages.push_one(item("mail", "a", "first"))).await.unwrap();
        let client = fixture.client().await;
        let partition = client.query_one("select id from reveille.partition", &[]).await.unwrap().get(0);
        Self { client, partition }
    }

    /// How many segments were appended, or the SQLSTATE of the refusal.
    async fn push(&self, id: Uuid) -> Result<usize, String> {
        let append = include_str!("before/append.sql").replace("{schema}", "reveille");
        let (places, ones, bytes) = (vec![self.partition], vec![1], vec![1]);
        let (ids, keys, names) = (vec![Uuid::now_v7()], vec![id], vec![Some(id.to_string())]);
        let (payloads, queues) = (vec![b"1".to_vec()], vec!["mail"]);
        let (no_ids, no_names, no_key) = (None::<Vec<Option<Uuid>>>, None::<Vec<Option<String>>>, None::<i32>);
        let params: [&(dyn ToSql + Sync); 24] = [
            &places, &ones, &places, &ones, &ones, &ones, &bytes, &ids, &names, &payloads, &no_ids, &no_names, &no_ids,
            &0_i64, &no_key, &true, &queues, &places, &keys, &keys, &ones, &ones, &keys, &ids,
        ];
        let appended = self.client.query(&append, &params).await;
        appended.map(|rows| rows.len()).map_err(|error| error.code().unwrap().code().to_owned())
    }

    async fn seen(&self, id: Uuid) -> Vec<Uuid> {
        let duplicates = include_str!("before/duplicates.sql").replace("{schema}", "reveille");
        let rows = self.client.query(&duplicates, &[&vec![self.partition], &vec![id]]).await.unwrap();
        rows.iter().map(|row| row.get(2)).collect()
    }
}
