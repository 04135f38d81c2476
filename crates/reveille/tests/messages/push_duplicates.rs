//! A transaction id comes in once within its window.

use std::time::Duration;

use reveille::messages::{Messages, MessagesError, PushItem, PushOutcome, Pushed, QueueOptions};
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::support::{Fixture, item, queue, seqs, soon, until_blocked};

fn named(payload: &str, id: &str) -> PushItem {
    item("mail", "a", payload).transaction_id(id)
}

async fn push(messages: &Messages, items: Vec<PushItem>) -> Vec<Pushed> {
    soon(messages.push(items)).await.into_iter().collect::<Result<_, MessagesError>>().unwrap()
}

#[tokio::test]
async fn of_the_same_id_in_one_call_the_first_is_stored() {
    let fixture = Fixture::new().await;

    let pushed = push(&fixture.messages, vec![named("one", "x"), named("two", "y"), named("three", "x")]).await;

    assert_eq!(pushed[2].outcome, PushOutcome::Duplicate { of: pushed[0].id });
    assert_eq!((pushed[2].id, &*pushed[2].transaction_id()), (pushed[0].id, "x"));
    assert_eq!(fixture.texts("mail", "a").await, ["one", "two"]);
}

#[tokio::test]
async fn the_same_id_in_a_later_call_is_a_duplicate_and_the_rest_of_that_call_is_stored() {
    let fixture = Fixture::new().await;
    let first = push(&fixture.messages, vec![named("one", "x")]).await;

    let again = push(&fixture.messages, vec![named("two", "y"), named("three", "x"), named("four", "x")]).await;
    let later = push(&fixture.messages, vec![named("five", "z"), named("six", "y")]).await;

    assert_eq!(again[1].outcome, PushOutcome::Duplicate { of: first[0].id });
    assert_eq!(again[2].outcome, PushOutcome::Duplicate { of: first[0].id });
    assert_eq!(later[1].outcome, PushOutcome::Duplicate { of: again[0].id });
    assert_eq!(again[0].partition_uid, first[0].partition_uid);
    assert_eq!(fixture.texts("mail", "a").await, ["one", "two", "five"]);
}

#[tokio::test]
async fn ids_that_are_uuids_and_ids_that_are_words_are_both_remembered() {
    let fixture = Fixture::new().await;
    let ids = [Uuid::now_v7().to_string(), Uuid::new_v4().to_string().to_uppercase(), "order 7".into(), String::new()];
    let items = || ids.iter().map(|id| named("x", id)).collect();

    let first = push(&fixture.messages, items()).await;
    let second = push(&fixture.messages, items()).await;

    assert!(first.iter().all(|pushed| matches!(pushed.outcome, PushOutcome::Stored { .. })));
    assert!(second.iter().all(Pushed::is_duplicate));
}

#[tokio::test]
async fn the_same_id_in_another_partition_is_another_message() {
    let fixture = Fixture::new().await;

    let items = vec![item("mail", "a", "1").transaction_id("x"), item("mail", "b", "2").transaction_id("x")];
    let answers = soon(fixture.messages.push(items)).await;

    assert_eq!(seqs(&answers), [1, 1]);
}

#[tokio::test]
async fn two_nodes_that_push_the_same_id_at_once_store_it_once() {
    let fixture = Fixture::new().await;
    let other = fixture.node().await;
    push(&fixture.messages, vec![named("first", "w")]).await;
    push(&other, vec![named("second", "v")]).await;
    let holder = fixture.client().await;
    holder.batch_execute("begin; select from reveille.head for update").await.unwrap();
    let mut pushes = JoinSet::new();
    for node in [fixture.messages.clone(), other] {
        pushes.spawn(async move { node.push_one(named("both", "x")).await.unwrap() });
    }
    until_blocked(&fixture.client().await, 2).await;

    holder.batch_execute("commit").await.unwrap();
    let answers = soon(pushes.join_all()).await;

    let stored: Vec<&Pushed> = answers.iter().filter(|pushed| !pushed.is_duplicate()).collect();
    let dropped: Vec<&Pushed> = answers.iter().filter(|pushed| pushed.is_duplicate()).collect();
    assert_eq!((stored.len(), dropped.len()), (1, 1));
    assert_eq!(dropped[0].outcome, PushOutcome::Duplicate { of: stored[0].id });
    assert_eq!(fixture.texts("mail", "a").await, ["first", "second", "both"]);
}

#[tokio::test]
async fn after_the_window_an_id_is_new_again() {
    let fixture = Fixture::new().await;
    push(&fixture.messages, vec![named("one", "x")]).await;
    let over = "update reveille.dedup set until = clock_timestamp() - interval '1 second'";
    fixture.client().await.execute(over, &[]).await.unwrap();

    let again = push(&fixture.messages, vec![named("two", "x")]).await;
    let third = push(&fixture.messages, vec![named("three", "x")]).await;

    assert_eq!(again[0].outcome, PushOutcome::Stored { seq: 2 });
    assert_eq!(third[0].outcome, PushOutcome::Duplicate { of: again[0].id });
}

#[tokio::test]
async fn a_queue_without_a_window_remembers_nothing() {
    let fixture = Fixture::new().await;
    let options = QueueOptions::default().dedup_window(Duration::ZERO);
    soon(fixture.messages.configure(&queue("mail"), &options)).await.unwrap();

    let pushed = push(&fixture.messages, vec![named("one", "x"), named("two", "x")]).await;

    assert!(pushed.iter().all(|pushed| !pushed.is_duplicate()));
    assert_eq!(fixture.count("reveille.dedup").await, 0);
}
