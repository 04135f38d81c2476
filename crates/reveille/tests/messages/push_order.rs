//! The order of a partition is the order in which its partition row was locked, so that a reader
//! misses nothing.

use reveille::messages::{Messages, PushItem};
use tokio::task::JoinSet;
use tokio_postgres::Client;

use crate::settle_kit::deadlocks_after;
use crate::support::{Fixture, item, push, queue, seq, soon, until_blocked};

/// Makes the push of the payload `slow` wait for an advisory lock, after it has its sequence and
/// before its commit.
const SLOW: &str = "create function wait_if_slow() returns trigger language plpgsql as $$ begin
       if new.payloads[1] = 'slow' then perform pg_advisory_xact_lock_shared(77); end if;
       return new;
     end $$;
     create trigger wait_if_slow before insert on reveille.segment for each row execute function wait_if_slow();";

#[tokio::test]
async fn sequences_assigned_without_a_lock_let_a_reader_skip_a_message() {
    let fixture = Fixture::new().await;
    let (slow, fast, reader) = (fixture.client().await, fixture.client().await, fixture.client().await);
    reader.batch_execute("create table naive (seq bigserial primary key, payload text)").await.unwrap();
    let mut seen = Vec::new();
    let mut committed = 0;

    slow.batch_execute("begin; insert into naive (payload) values ('slow')").await.unwrap();
    fast.batch_execute("insert into naive (payload) values ('fast')").await.unwrap();
    read_on(&reader, &mut committed, &mut seen).await;
    slow.batch_execute("commit").await.unwrap();
    read_on(&reader, &mut committed, &mut seen).await;

    assert_eq!(seen, ["fast"], "the message that was committed last stands before the cursor");
}

/// Everything behind the cursor, which then stands at the end of it.
async fn read_on(reader: &Client, committed: &mut i64, seen: &mut Vec<String>) {
    for row in reader.query("select seq, payload from naive where seq > $1 order by seq", &[committed]).await.unwrap() {
        *committed = row.get(0);
        seen.push(row.get(1));
    }
}

#[tokio::test]
async fn of_two_pushers_the_one_with_the_partition_row_comes_first_however_long_its_commit_takes() {
    let fixture = Fixture::new().await;
    let other = fixture.node().await;
    push(&fixture.messages, "mail", "first").await;
    let client = fixture.client().await;
    client.batch_execute(SLOW).await.unwrap();
    let gate = fixture.client().await;
    gate.batch_execute("select pg_advisory_lock(77)").await.unwrap();
    let mut pushes = JoinSet::new();

    pushes.spawn(push_text(fixture.messages.clone(), "slow"));
    until_blocked(&client, 1).await;
    pushes.spawn(push_text(other, "fast"));
    until_blocked(&client, 2).await;
    let meanwhile = fixture.texts("mail", "Default").await;
    gate.batch_execute("select pg_advisory_unlock(77)").await.unwrap();
    let mut places = soon(pushes.join_all()).await;

    places.sort_unstable();
    assert_eq!(meanwhile, ["first"], "a reader does not pass the slow push meanwhile");
    assert_eq!(places, [2, 3]);
    assert_eq!(fixture.texts("mail", "Default").await, ["first", "slow", "fast"]);
}

async fn push_text(messages: Messages, text: &'static str) -> i64 {
    seq(&messages.push_one(PushItem::new(queue("mail"), text)).await.unwrap())
}

#[tokio::test]
async fn a_push_begun_after_anothers_answer_comes_after_it_whichever_nodes_they_go_to() {
    let fixture = Fixture::new().await;
    let nodes = [fixture.messages.clone(), fixture.node().await, fixture.node().await];

    for n in 0..60 {
        let pushed = soon(nodes[n % 3].push_one(item("mail", "a", &n.to_string()))).await.unwrap();
        assert_eq!(seq(&pushed), i64::try_from(n).unwrap() + 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pushes_to_many_partitions_in_any_order_from_many_nodes_never_deadlock() {
    let fixture = Fixture::new().await;
    let nodes = [fixture.messages.clone(), fixture.node().await, fixture.node().await];
    let mut tasks = JoinSet::new();

    for caller in 0..12_usize {
        let node = nodes[caller % 3].clone();
        tasks.spawn(async move {
            for round in 0..20 {
                let shuffled = (0..30).map(|n| (n * 7 + caller * 11 + round * 13) % 30);
                let items = shuffled.map(|p| item("mail", &format!("p{p}"), "x")).collect();
                assert!(node.push(items).await.iter().all(Result::is_ok));
            }
        });
    }
    soon(tasks.join_all()).await;

    assert_eq!(
        fixture.count("reveille.partition_row where next_seq = 241").await,
        30,
        "12 callers, 20 rounds, each partition once"
    );
    assert_eq!(deadlocks_after(&nodes.each_ref(), &fixture.client().await).await, 0);
}
