//! What a pop returns.

use std::collections::BTreeSet;
use std::time::Duration;

use reveille::database::{Database, DatabaseOptions, StatementMode};
use reveille::messages::{Messages, MessagesOptions, Pop, Settlement};
use reveille_wake::{Event, Outcome};

use crate::pop_kit::{Node, group, none, number, pop, pop_queue, push_to, stranded, texts};
use crate::support::{Fixture, partition, push, queue, soon};

async fn complete(messages: &Messages, batch: &reveille::messages::Batch) {
    let settlements = batch.partitions.iter().map(Settlement::complete).collect();
    for settled in soon(messages.settle(settlements)).await {
        settled.expect("is settled");
    }
}

#[tokio::test]
async fn a_message_comes_as_it_was_pushed() {
    let it = Fixture::new().await;
    let pushed = push(&it.messages, "mail", "hello").await;

    let batch = pop_queue(&it.messages, "mail", 1).await;

    assert_eq!(texts(&batch), ["hello"]);
    let lease = &batch.partitions[0];
    assert_eq!((lease.queue.as_str(), lease.partition.as_str(), lease.deliveries), ("mail", "Default", 1));
    assert_eq!(lease.lease_time, Duration::from_secs(60));
    let message = &lease.messages[0];
    assert_eq!(
        (message.id, message.transaction_id.clone(), message.seq),
        (pushed.id, pushed.transaction_id().to_string(), 1)
    );
    assert_eq!(Some(batch.partitions[0].partition_uid), pushed.partition_uid);
    assert!(batch.lease.is_some());
}

#[tokio::test]
async fn a_leased_partition_is_nobody_elses_until_it_is_settled() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["1", "2", "3"]).await;

    let first = pop_queue(&it.messages, "mail", 2).await;
    none(&it.messages, "mail").await;
    complete(&it.messages, &first).await;
    let second = pop_queue(&it.messages, "mail", 2).await;

    assert_eq!((texts(&first), texts(&second)), (vec!["1".to_owned(), "2".to_owned()], vec!["3".to_owned()]));
}

#[tokio::test]
async fn what_is_not_there_is_popped_as_nothing_and_not_made() {
    let it = Fixture::new().await;
    none(&it.messages, "nothing").await;
    push(&it.messages, "mail", "hello").await;

    let absent = pop(&it.messages, Pop::partition(queue("mail"), partition("nothing"))).await;

    assert!(absent.is_none());
    assert_eq!((it.count("reveille.queue").await, it.count("reveille.partition").await), (1, 1));
}

#[tokio::test]
async fn a_pop_by_partition_gets_that_partition_only() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["a1"]).await;
    push_to(&it.messages, "mail", "b", &["b1"]).await;

    let batch = pop(&it.messages, Pop::partition(queue("mail"), partition("b")).batch(9)).await.unwrap();
    let again = pop(&it.messages, Pop::partition(queue("mail"), partition("b")).batch(9)).await;

    assert_eq!(texts(&batch), ["b1"]);
    assert!(again.is_none());
}

#[tokio::test]
async fn a_pop_brings_no_more_messages_and_partitions_than_were_asked_for() {
    let it = Fixture::new().await;
    for name in ["a", "b", "c", "d"] {
        push_to(&it.messages, "mail", name, &["1", "2", "3"]).await;
    }

    let batch = pop(&it.messages, Pop::queue(queue("mail")).batch(7).partitions(3)).await.unwrap();
    let rest = pop(&it.messages, Pop::queue(queue("mail")).batch(100).partitions(100)).await.unwrap();

    let sizes = |batch: &reveille::messages::Batch| -> Vec<usize> {
        batch.partitions.iter().map(|partition| partition.messages.len()).collect()
    };
    assert_eq!(sizes(&batch), [3, 3, 1]);
    // The third partition is leased with one message; two more of it wait for their turn.
    assert_eq!(sizes(&rest), [3]);
    let names: BTreeSet<&str> =
        batch.partitions.iter().chain(&rest.partitions).map(|it| it.partition.as_str()).collect();
    assert_eq!(names.len(), 4);
}

#[tokio::test]
async fn a_pop_does_not_write_what_it_has_no_room_for() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "z", &["before"]).await;
    complete(&it.messages, &pop_queue(&it.messages, "mail", 1).await).await;
    for name in ["a", "b", "c"] {
        push_to(&it.messages, "mail", name, &["1", "2"]).await;
    }
    let client = it.client().await;
    client.batch_execute("select reveille.mark_ready(array(select id from reveille.queue))").await.unwrap();
    client.batch_execute("create table before as select ctid as place from reveille.cursor").await.unwrap();

    let batch = pop(&it.messages, Pop::queue(queue("mail")).batch(2).partitions(3)).await.unwrap();

    assert_eq!(batch.partitions.len(), 1);
    let untouched =
        "select count(*) from reveille.cursor join before on before.place = cursor.ctid where due_at is not null";
    assert_eq!(number(&client, untouched).await, 2);
}

/// The first consumer's slots take all three partitions, and it has room for one: the claim round
/// goes on until the others are served.
#[tokio::test]
async fn one_claim_round_serves_the_next_consumer_with_what_the_first_had_no_room_for() {
    let it = Fixture::new().await;
    let node = Node::on(&it.db).await.proven().await;
    push_to(&it.messages, "mail", "z", &["before"]).await;
    complete(&it.messages, &pop_queue(&it.messages, "mail", 1).await).await;
    let wide = || Pop::queue(queue("mail")).batch(2).partitions(3);
    let consumers = [node.parked(wide()).await, node.joined(wide()).await, node.joined(wide()).await];
    let before = served(&node);

    it.client()
        .await
        .batch_execute("begin; select reveille.push('mail', to_json(n / 3), partition => 'p' || n % 3) from generate_series(0, 5) n; commit")
        .await
        .unwrap();
    for consumer in consumers {
        assert_eq!(texts(&soon(consumer).await.unwrap().unwrap()), ["0", "1"]);
    }

    assert_eq!(served(&node), before + 1);
}

/// How many claim rounds found something.
fn served(node: &Node) -> usize {
    let brought =
        |event: &Event| matches!(event, Event::RoundEnded { outcome: Outcome::Filled | Outcome::UnderFilled, .. });
    node.events.count(brought)
}

#[tokio::test]
async fn a_pop_reads_over_the_borders_of_flushes() {
    let it = Fixture::new().await;
    for number in 1..=7 {
        push_to(&it.messages, "mail", "a", &[&format!("{number}a"), &format!("{number}b")]).await;
    }

    let first = pop_queue(&it.messages, "mail", 5).await;
    complete(&it.messages, &first).await;
    let second = pop_queue(&it.messages, "mail", 100).await;

    assert_eq!(texts(&first), ["1a", "1b", "2a", "2b", "3a"]);
    assert_eq!(texts(&second), ["3b", "4a", "4b", "5a", "5b", "6a", "6b", "7a", "7b"]);
    let seqs: Vec<i64> = second.messages().map(|message| message.seq).collect();
    assert_eq!(seqs, (6..=14).collect::<Vec<_>>());
}

#[tokio::test]
async fn the_partition_that_has_been_due_longest_comes_first() {
    let it = Fixture::new().await;
    for name in ["c", "a", "b"] {
        push_to(&it.messages, "mail", name, &[name]).await;
    }

    let mut popped = Vec::new();
    for _ in 0..3 {
        popped.extend(texts(&pop_queue(&it.messages, "mail", 10).await));
    }

    assert_eq!(popped, ["c", "a", "b"]);
}

#[tokio::test]
async fn what_is_acked_by_being_popped_is_durable_and_does_not_come_again() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["1", "2", "3"]).await;

    let batch = pop(&it.messages, Pop::queue(queue("mail")).batch(2).auto_ack()).await.unwrap();
    let rest = pop(&it.messages, Pop::queue(queue("mail")).batch(2).auto_ack()).await.unwrap();

    assert_eq!((batch.lease, texts(&batch)), (None, vec!["1".to_owned(), "2".to_owned()]));
    assert_eq!(texts(&rest), ["3"]);
    none(&it.messages, "mail").await;
    let client = it.client().await;
    assert_eq!(number(&client, "select committed from reveille.cursor").await, 3);
    assert_eq!((stranded(&client).await, it.messages.stranded().await.unwrap()), (0, 0));

    let strand =
        "update reveille.cursor set committed = 1, due_at = null; update reveille.partition_row set new_since = null";
    client.batch_execute(strand).await.unwrap();
    assert_eq!((stranded(&client).await, it.messages.stranded().await.unwrap()), (1, 1));
}

#[tokio::test]
async fn every_group_sees_every_message_at_its_own_speed() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["1", "2"]).await;
    let ask = |name: &str, batch| Pop::queue(queue("mail")).group(group(name)).batch(batch);

    let audit = pop(&it.messages, ask("audit", 1)).await.unwrap();
    let search = pop(&it.messages, ask("search", 2)).await.unwrap();
    complete(&it.messages, &audit).await;
    let audit_again = pop(&it.messages, ask("audit", 5)).await.unwrap();

    assert_eq!(texts(&audit), ["1"]);
    assert_eq!(texts(&search), ["1", "2"]);
    assert_eq!(texts(&audit_again), ["2"]);
}

#[tokio::test]
async fn a_namespace_is_served_by_priority_and_a_task_over_all_namespaces() {
    let it = Fixture::new().await;
    push(&it.messages, "shop.low", "low").await;
    push(&it.messages, "shop.high", "high").await;
    push(&it.messages, "blog.low", "blog").await;
    it.set("shop.high", "priority = 7").await;

    let mut shop = Vec::new();
    while let Some(batch) = pop(&it.messages, Pop::namespace("shop")).await {
        shop.extend(texts(&batch));
    }
    let task = pop(&it.messages, Pop::task("low").partitions(9).batch(9)).await.unwrap();
    let both = pop(&it.messages, Pop::namespace_and_task("blog", "low")).await;
    let nobody = pop(&it.messages, Pop::namespace("nobody")).await;

    assert_eq!(shop, ["high", "low"]);
    assert_eq!(texts(&task), ["blog"]);
    assert!(both.is_none() && nobody.is_none());
}

#[tokio::test]
async fn large_payloads_are_bounded_by_bytes_and_come_byte_for_byte() {
    let it = Fixture::with(MessagesOptions::default().pop_bytes_max(100_000)).await;
    let payload = "x".repeat(60_000);
    for _ in 0..3 {
        push_to(&it.messages, "mail", "a", &[&payload]).await;
    }

    let batch = pop_queue(&it.messages, "mail", 100).await;

    assert_eq!(batch.len(), 2);
    assert!(batch.messages().all(|message| message.payload.as_bytes() == payload.as_bytes()));
}

#[tokio::test]
async fn the_partitions_of_a_pop_share_its_bytes() {
    let it = Fixture::with(MessagesOptions::default().pop_bytes_max(1 << 20)).await;
    let payload = "x".repeat(40_000);
    for _ in 0..4 {
        for number in 0..16 {
            push_to(&it.messages, "mail", &number.to_string(), &[&payload]).await;
        }
    }
    let ask = || Pop::queue(queue("mail")).batch(1000).partitions(16);

    let first = pop(&it.messages, ask()).await.unwrap();
    complete(&it.messages, &first).await;
    let second = pop(&it.messages, ask()).await.unwrap();

    // A sixteenth is 64 KiB, which the second message of a partition goes beyond and no third
    // begins in.
    let each = |batch: &reveille::messages::Batch| {
        batch.partitions.iter().map(|partition| partition.messages.len()).collect::<Vec<_>>()
    };
    assert_eq!([each(&first), each(&second)], [[2; 16], [2; 16]]);
}

#[tokio::test]
async fn a_wide_pop_brings_a_fair_part_of_the_one_partition_that_is_full() {
    let it = Fixture::with(MessagesOptions::default().pop_bytes_max(1 << 20)).await;
    let payload = "x".repeat(20_000);
    for _ in 0..5 {
        push_to(&it.messages, "mail", "full", &[&payload]).await;
    }

    let batch = pop(&it.messages, Pop::queue(queue("mail")).batch(1000).partitions(1000)).await.unwrap();

    assert_eq!(batch.len(), 4, "64 KiB, and the rest of the message that goes beyond");
}

/// Behind a transaction pooler every statement is a transaction of its own, with settings of its
/// own.
#[tokio::test]
async fn without_named_statements_and_session_settings_pops_bring_the_same() {
    let it = Fixture::new().await;
    let pooled = DatabaseOptions::new(it.db.url()).statement_mode(StatementMode::Pooled);
    let messages = Messages::new(&Database::connect(pooled).await.unwrap(), MessagesOptions::default());
    push_to(&messages, "mail", "a", &["1", "2", "3"]).await;
    let ask = || Pop::queue(queue("mail"));

    let first = pop(&messages, ask()).await.unwrap();
    complete(&messages, &first).await;
    let second = pop(&messages, ask()).await.unwrap();
    complete(&messages, &second).await;
    let third = pop(&messages, ask().auto_ack()).await.unwrap();
    let waited = soon(messages.pop(ask().wait(Duration::from_millis(20)))).await.unwrap();

    assert_eq!([texts(&first), texts(&second), texts(&third)].concat(), ["1", "2", "3"]);
    assert!(waited.is_none());
    let client = it.client().await;
    assert_eq!(number(&client, "select committed from reveille.cursor").await, 3);
}
