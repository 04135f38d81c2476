//! Consumers of what does not exist: they run no query while it does not, and all of them are woken
//! when it does.

use reveille::messages::{Pop, PushItem, QueueOptions};
use reveille_testkit::TestDatabase;
use reveille_wake::Event;
use tokio::task::JoinSet;

use crate::pop_kit::{Node, group, pop_queue, push_to, texts, waits};
use crate::support::{item, partition, push, queue, soon};

/// More than one claim round serves.
const CROWD: usize = 600;

/// A pop that reads names from the database waits for the lock, and does not count as waiting.
#[tokio::test]
async fn a_pop_that_comes_back_for_what_does_not_exist_runs_no_query() {
    let db = TestDatabase::new().await;
    let node = Node::on(&db).await.proven().await;
    push(&node.messages, "mail", "before").await;
    pop_queue(&node.messages, "mail", 1).await;
    let absent = [
        Pop::queue(queue("shop.later")),
        Pop::partition(queue("shop.later"), partition("a")).group(group("b")),
        Pop::partition(queue("mail"), partition("later")),
        Pop::namespace("shop").group(group("c")),
        Pop::task("later").group(group("d")),
    ];
    let mut before = Vec::new();
    for pop in &absent {
        before.push(node.joined(pop.clone()).await);
    }
    until_all_had_a_round(&node).await;
    for waiting in before {
        waiting.abort();
        assert!(soon(waiting).await.is_err(), "it went away");
    }

    let mut holder = db.client().await;
    let held = holder.transaction().await.unwrap();
    held.batch_execute("lock table reveille.queue, reveille.partition in access exclusive mode").await.unwrap();
    let mut waiting = Vec::new();
    for pop in absent {
        waiting.push(node.joined(pop).await);
    }
    held.rollback().await.unwrap();
    push(&node.messages, "shop.later", "hello").await;
    push_to(&node.messages, "shop.later", "a", &["hello"]).await;
    push_to(&node.messages, "mail", "later", &["hello"]).await;

    for waiting in waiting {
        assert_eq!(texts(&soon(waiting).await.unwrap().unwrap()), ["hello"]);
    }
}

/// Waits until every waited key has had a claim round.
async fn until_all_had_a_round(node: &Node) {
    let mut events = node.events.reader_from_now();
    crate::pop_kit::none(&node.messages, "nobody-pushes-here").await;
    events.until(|event| matches!(event, Event::RoundEnded { .. })).await;
}

#[tokio::test]
async fn a_queue_that_comes_into_being_is_found_by_a_whole_crowd_that_waited_for_it() {
    let db = TestDatabase::new().await;
    let node = Node::on(&db).await.proven().await;
    let mut crowd = JoinSet::new();
    for _ in 0..CROWD {
        let messages = node.messages.clone();
        crowd.spawn(async move { soon(waits(&messages, Pop::queue(queue("later")))).await });
    }
    soon(async {
        while node.messages.figures().waiting < CROWD {
            tokio::task::yield_now().await;
        }
    })
    .await;

    let each: Vec<PushItem> = (0..CROWD).map(|n| item("later", &format!("p{n}"), "hello")).collect();
    for pushed in soon(node.messages.push(each)).await {
        pushed.unwrap();
    }

    for batch in soon(crowd.join_all()).await {
        assert_eq!(texts(&batch.unwrap().unwrap()), ["hello"]);
    }
}

/// One pop waits through the change, so that the namespace is known to be empty again.
#[tokio::test]
async fn a_pop_that_comes_back_for_a_namespace_follows_a_changed_priority() {
    let db = TestDatabase::new().await;
    let node = Node::on(&db).await.proven().await;
    for (name, priority) in [("a", 2), ("b", 1)] {
        let options = QueueOptions::default().namespace("shop").priority(priority);
        node.messages.configure(&queue(name), &options).await.unwrap();
        push(&node.messages, name, "before").await;
        let batch = pop_queue(&node.messages, name, 1).await;
        node.messages.complete(&batch).await.pop().unwrap().unwrap();
    }
    let through = node.parked(Pop::namespace("shop")).await;

    let mut events = node.events.reader_from_now();
    node.messages.configure(&queue("b"), &QueueOptions::default().priority(3)).await.unwrap();
    events.until(|event| matches!(event, Event::RoundEnded { .. })).await;
    until_all_had_a_round(&node).await;
    through.abort();
    assert!(soon(through).await.is_err(), "it went away");
    push(&node.messages, "a", "the lesser").await;
    push(&node.messages, "b", "the greater").await;

    let came = soon(waits(&node.messages, Pop::namespace("shop"))).await.unwrap().unwrap();
    assert_eq!(texts(&came), ["the greater"]);
}

/// Its group is remembered under the deleted queue, and no claim of the group would show that.
#[tokio::test]
async fn a_pop_of_a_partition_outlives_its_queue() {
    let db = TestDatabase::new().await;
    let node = Node::on(&db).await.proven().await;
    push(&node.messages, "mail", "before").await;
    let later = || Pop::partition(queue("mail"), partition("later"));
    let waiting = node.parked(later()).await;

    assert!(soon(node.messages.delete_queue(&queue("mail"))).await.unwrap());
    push_to(&node.messages, "mail", "later", &["hello"]).await;

    let batch = soon(waiting).await.unwrap().unwrap();
    assert_eq!(texts(&batch), ["hello"]);
    node.messages.complete(&batch).await.pop().unwrap().unwrap();
    assert!(crate::pop_kit::pop(&node.messages, later()).await.is_none());
}
