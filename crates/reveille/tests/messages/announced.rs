//! Claim rounds that claim announced partitions only, and the races in which that would be wrong.
//!
//! In each of them some consumer is left without messages: otherwise no search would be needed.

use reveille::database::{Database, DatabaseOptions};
use reveille::messages::{Batch, Messages, MessagesOptions, Pop};
use reveille_testkit::TestDatabase;
use reveille_wake::{Cause, Event};
use tokio::task::{JoinHandle, JoinSet};

use crate::pop_kit::{NEVER, Node, group, pop, push_to, texts, waits};
use crate::support::{partition, queue, soon, until_blocked};

fn mail() -> Pop {
    Pop::queue(queue("mail"))
}

/// A node with consumers that wait for a queue of which it knows that the partitions are empty.
async fn waiting(node: &Node, partitions: &[&str], consumers: usize) -> JoinSet<Vec<String>> {
    for name in partitions {
        push_to(&node.messages, "mail", name, &["before"]).await;
        let batch = pop(&node.messages, Pop::partition(queue("mail"), partition(name))).await.expect("is there");
        node.messages.complete(&batch).await.pop().unwrap().unwrap();
    }
    let first = node.parked(mail()).await;
    let mut all = JoinSet::from_iter([first].map(text_of));
    for _ in 1..consumers {
        all.spawn(text_of(node.joined(mail()).await));
    }
    all
}

async fn text_of(consumer: JoinHandle<Option<Batch>>) -> Vec<String> {
    texts(&consumer.await.expect("does not panic").expect("something came"))
}

async fn next(consumers: &mut JoinSet<Vec<String>>) -> Vec<String> {
    soon(consumers.join_next()).await.expect("somebody waits").expect("does not panic")
}

#[tokio::test]
async fn an_announced_partition_is_claimed_without_a_search() {
    let db = TestDatabase::new().await;
    let node = Node::on(&db).await.proven().await;
    let mut consumers = waiting(&node, &["a", "b"], 2).await;
    // A search marks partitions ready, and would wait for this lock.
    let mut holder = db.client().await;
    let held = holder.transaction().await.unwrap();
    let b = "partition = (select id from reveille.partition where name = 'b')";
    db.client()
        .await
        .batch_execute(&format!("update reveille.partition_row set new_since = clock_timestamp() where {b}"))
        .await
        .unwrap();
    held.batch_execute(&format!("update reveille.cursor set upto = 0 where {b}")).await.unwrap();
    held.commit().await.unwrap();
    let held = holder.transaction().await.unwrap();
    held.execute(&format!("select from reveille.cursor where {b} for update"), &[]).await.unwrap();

    push_to(&node.messages, "mail", "a", &["a1"]).await;
    assert_eq!(next(&mut consumers).await, ["a1"]);
    // A search would block here, and does after an announcement without a partition.
    db.client()
        .await
        .batch_execute("select reveille.push('mail', '\"somewhere\"'::json, partition => 'c')")
        .await
        .unwrap();
    until_blocked(&db.client().await, 1).await;
    held.rollback().await.unwrap();
    assert_eq!(next(&mut consumers).await, ["\"somewhere\""]);
}

#[tokio::test]
async fn an_announcement_without_a_partition_causes_a_search_though_others_came_first() {
    let db = TestDatabase::new().await;
    let node = Node::on(&db).await.proven().await;
    let mut consumers = waiting(&node, &["a", "b", "c"], 4).await;
    let mut holder = db.client().await;
    let held = holder.transaction().await.unwrap();
    held.batch_execute("lock table reveille.cursor in exclusive mode").await.unwrap();

    push_to(&node.messages, "mail", "a", &["a1"]).await;
    until_blocked(&db.client().await, 1).await;
    push_to(&node.messages, "mail", "b", &["b1"]).await;
    let mut events = node.events.reader_from_now();
    db.client().await.batch_execute("select reveille.push('mail', '\"c1\"'::json, partition => 'c')").await.unwrap();
    events.until(|event| matches!(event, Event::Woken { cause: Cause::Notified, .. })).await;
    held.rollback().await.unwrap();

    let mut came = [next(&mut consumers).await, next(&mut consumers).await, next(&mut consumers).await].concat();
    came.sort_unstable();
    assert_eq!(came, ["\"c1\"", "a1", "b1"]);
}

/// The ack has read the partition row before the push, and finds nothing left; the claim finds the
/// cursor locked.
#[tokio::test]
async fn an_announced_partition_that_is_locked_is_searched_for() {
    let db = TestDatabase::new().await;
    let node = Node::on(&db).await.proven().await;
    let mut consumers = waiting(&node, &["a"], 2).await;
    let mut acker = db.client().await;
    let ack = acker.transaction().await.unwrap();
    ack.batch_execute("update reveille.cursor set due_at = null, lease_until = null").await.unwrap();

    push_to(&node.messages, "mail", "a", &["a1"]).await;
    until_blocked(&db.client().await, 1).await;
    ack.commit().await.unwrap();

    assert_eq!(next(&mut consumers).await, ["a1"]);
}

#[tokio::test]
async fn an_announcement_reaches_every_instance_of_messages_in_a_process() {
    let db = TestDatabase::new().await;
    let database = Database::connect(DatabaseOptions::new(db.url()).heartbeat(NEVER)).await.unwrap();
    let node = Node::over(&database).proven().await;
    let other = Messages::new(&database, MessagesOptions::default());
    let mut consumers = waiting(&node, &["a"], 2).await;

    push_to(&other, "mail", "a", &["a1"]).await;

    assert_eq!(next(&mut consumers).await, ["a1"]);
}

#[tokio::test]
async fn more_announced_partitions_than_are_remembered_are_searched_for() {
    const PARTITIONS: usize = 530;
    let db = TestDatabase::new().await;
    let node = Node::on(&db).await.proven().await;
    let all = mail().group(group("all")).batch(10_000).partitions(10_000);
    let names: Vec<String> = (0..PARTITIONS).map(|n| format!("p{n}")).collect();
    let items = |text: &str| names.iter().map(|name| crate::support::item("mail", name, text)).collect::<Vec<_>>();
    for pushed in soon(node.messages.push(items("before"))).await {
        pushed.unwrap();
    }
    let before = pop(&node.messages, all.clone()).await.unwrap();
    for settled in node.messages.complete(&before).await {
        settled.unwrap();
    }
    let first = node.parked(all.clone()).await;
    let second = node.joined(all.clone()).await;
    let mut holder = db.client().await;
    let held = holder.transaction().await.unwrap();
    held.batch_execute("lock table reveille.cursor in exclusive mode").await.unwrap();
    // One by one, so that each is announced with its partition.
    for item in items("after") {
        soon(node.messages.push(vec![item])).await.pop().unwrap().unwrap();
    }
    held.rollback().await.unwrap();

    let mut came = 0;
    let mut waiting = vec![first, second];
    while came < PARTITIONS {
        let oldest = waiting.pop().unwrap();
        waiting.insert(0, waits(&node.messages, all.clone()));
        came += soon(oldest).await.unwrap().expect("something came").messages().count();
    }
    assert_eq!(came, PARTITIONS);
}
