//! Options of queues that concern pops, and messages that are claimed and never answered.

use std::time::Duration;

use reveille::messages::{Batch, Pop};

use crate::pop_kit::{WAIT, none, number, pop, pop_queue, push_to, stranded, texts};
use crate::support::{Fixture, partition, push, queue, soon};

fn seqs(batch: &Batch) -> Vec<i64> {
    batch.messages().map(|message| message.seq).collect()
}

/// Let every lease end now.
async fn end_leases(it: &Fixture) {
    let end = "update reveille.cursor set lease_until = clock_timestamp() - interval '1 s',
             due_at = clock_timestamp() - interval '1 s'
         where lease_until is not null";
    it.client().await.execute(end, &[]).await.unwrap();
}

#[tokio::test]
async fn a_delay_hides_what_is_too_young_and_shows_what_is_old_enough() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["old"]).await;
    push_to(&it.messages, "mail", "a", &["young"]).await;
    it.set("mail", "delay = '1 hour'").await;
    let age = "update reveille.segment set at = at - interval '2 hours' where last_seq = 1";
    it.client().await.execute(age, &[]).await.unwrap();

    let batch = pop_queue(&it.messages, "mail", 10).await;
    it.messages.complete(&batch).await.pop().unwrap().unwrap();

    assert_eq!(texts(&batch), ["old"]);
    none(&it.messages, "mail").await;
    let due = "select (extract(epoch from due_at - clock_timestamp()) / 60)::bigint from reveille.cursor";
    let client = it.client().await;
    assert!((58..=60).contains(&number(&client, due).await), "it is due when the next is old enough");
    assert_eq!(stranded(&client).await, 0);
}

#[tokio::test]
async fn a_window_hides_a_partition_while_it_is_pushed_to_but_not_for_ever() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["1"]).await;
    push_to(&it.messages, "mail", "b", &["2"]).await;
    it.set("mail", "window_buffer = '1 minute'").await;
    none(&it.messages, "mail").await;
    let client = it.client().await;

    // The producer of `a` never pauses, and its first message has waited for ten windows.
    let aged = "update reveille.segment set at = at - interval '11 minutes' where partition = (select min(id) from reveille.partition);
         update reveille.cursor set due_at = clock_timestamp()";
    client.batch_execute(aged).await.unwrap();
    let batch = pop(&it.messages, Pop::queue(queue("mail")).batch(9).partitions(9)).await.unwrap();

    assert_eq!(texts(&batch), ["1"]);
    assert_eq!(stranded(&client).await, 0);
}

#[tokio::test]
async fn messages_past_their_time_to_live_are_passed_over_and_the_cursor_with_them() {
    let it = Fixture::new().await;
    for payload in ["1", "2", "3"] {
        push_to(&it.messages, "mail", "a", &[payload]).await;
    }
    push_to(&it.messages, "mail", "b", &["4"]).await;
    it.set("mail", "ttl = '1 hour'").await;
    let client = it.client().await;
    client
        .batch_execute(
            "update reveille.segment set at = at - interval '2 hours' where payloads <> array['3'::bytea];
             update reveille.partition_row set last_at = last_at - interval '2 hours'
             where partition = (select max(id) from reveille.partition)",
        )
        .await
        .unwrap();

    let batch = pop(&it.messages, Pop::queue(queue("mail")).batch(9).partitions(9)).await.unwrap();

    assert_eq!((texts(&batch), seqs(&batch)), (vec!["3".to_owned()], vec![3]));
    none(&it.messages, "mail").await;
    let passed = "select committed from reveille.cursor order by partition desc limit 1";
    assert_eq!(number(&client, passed).await, 1);
    assert_eq!(stranded(&client).await, 0);
}

#[tokio::test]
async fn a_paused_queue_gives_nothing_and_forgets_nothing() {
    let it = Fixture::new().await;
    push(&it.messages, "mail", "hello").await;
    it.set("mail", "paused = true").await;
    none(&it.messages, "mail").await;
    let named = pop(&it.messages, Pop::partition(queue("mail"), partition("Default"))).await;
    assert!(named.is_none());

    it.set("mail", "paused = false").await;

    assert_eq!(texts(&pop_queue(&it.messages, "mail", 1).await), ["hello"]);
}

#[tokio::test]
async fn the_switch_pauses_every_queue() {
    let it = Fixture::new().await;
    push(&it.messages, "mail", "hello").await;
    let client = it.client().await;
    client.execute("update reveille.switch set engaged = true where name = 'pop_paused'", &[]).await.unwrap();
    none(&it.messages, "mail").await;

    client.execute("update reveille.switch set engaged = false where name = 'pop_paused'", &[]).await.unwrap();

    assert_eq!(texts(&pop_queue(&it.messages, "mail", 1).await), ["hello"]);
}

#[tokio::test]
async fn a_message_that_was_claimed_too_often_goes_to_the_dead_letters_inside_the_claim() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["poison", "good"]).await;
    it.set("mail", "max_deliveries = 3").await;

    let mut deliveries = Vec::new();
    let last = loop {
        let batch = pop_queue(&it.messages, "mail", 1).await;
        if texts(&batch) != ["poison"] {
            break batch;
        }
        deliveries.push(batch.partitions[0].deliveries);
        assert!(deliveries.len() < 10, "it comes for ever");
        end_leases(&it).await;
    };

    assert_eq!(deliveries, [1, 2, 3]);
    assert_eq!((texts(&last), last.partitions[0].deliveries), (vec!["good".to_owned()], 1));
    let client = it.client().await;
    let letter =
        client.query_one("select seq, payload, deliveries, error from reveille.dead_letter", &[]).await.unwrap();
    assert_eq!((letter.get::<_, i64>(0), letter.get::<_, &[u8]>(1)), (1, &b"poison"[..]));
    assert_eq!((letter.get::<_, i32>(2), letter.get::<_, &str>(3)), (3, "claimed 3 times without an answer"));
    assert_eq!(it.messages.figures().buried_by_claims, 1);
}

#[tokio::test]
async fn a_poison_message_that_is_the_last_leaves_an_empty_partition() {
    let it = Fixture::new().await;
    push(&it.messages, "mail", "poison").await;
    it.set("mail", "max_deliveries = 1").await;
    pop_queue(&it.messages, "mail", 1).await;
    end_leases(&it).await;

    none(&it.messages, "mail").await;

    let client = it.client().await;
    assert_eq!(number(&client, "select count(*) from reveille.dead_letter").await, 1);
    assert_eq!(number(&client, "select count(*) from reveille.cursor where due_at is not null").await, 0);
    push(&it.messages, "mail", "good").await;
    assert_eq!(texts(&pop_queue(&it.messages, "mail", 1).await), ["good"]);
}

/// A batch of ten kills its consumer because of the fourth message: the nine others must not go to
/// the dead letters with it.
#[tokio::test]
async fn one_bad_message_of_a_batch_is_found_and_goes_alone() {
    let it = Fixture::new().await;
    let payloads = ["1", "2", "3", "bad", "5", "6", "7", "8", "9", "10"];
    push_to(&it.messages, "mail", "a", &payloads).await;
    it.set("mail", "max_deliveries = 4").await;

    let mut done = Vec::new();
    for _ in 0..100 {
        let Some(batch) = pop(&it.messages, Pop::queue(queue("mail")).batch(10)).await else { break };
        if texts(&batch).contains(&"bad".to_owned()) {
            end_leases(&it).await; // the consumer died
            continue;
        }
        done.extend(texts(&batch));
        it.messages.complete(&batch).await.pop().unwrap().unwrap();
    }

    assert_eq!(done, ["1", "2", "3", "5", "6", "7", "8", "9", "10"]);
    assert_eq!(it.count("reveille.dead_letter").await, 1);
}

#[tokio::test]
async fn deleted_messages_are_left_out_and_a_lease_of_nothing_else_is_passed() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["1", "2", "3"]).await;
    push_to(&it.messages, "mail", "a", &["4"]).await;
    let client = it.client().await;
    client.execute("update reveille.segment set gone = '{1,3}' where last_seq = 3", &[]).await.unwrap();

    let first = pop_queue(&it.messages, "mail", 3).await;
    it.messages.complete(&first).await.pop().unwrap().unwrap();
    client.execute("update reveille.segment set gone = '{1}' where last_seq = 4", &[]).await.unwrap();
    none(&it.messages, "mail").await;

    assert_eq!((texts(&first), seqs(&first)), (vec!["2".to_owned()], vec![2]));
    assert_eq!(number(&client, "select committed from reveille.cursor").await, 4);
    assert_eq!(number(&client, "select count(*) from reveille.cursor where lease_until is not null").await, 0);
}

#[tokio::test]
async fn what_retention_removed_is_passed_over() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["1"]).await;
    push_to(&it.messages, "mail", "a", &["2"]).await;
    it.client().await.execute("update reveille.partition_row set first_seq = 2", &[]).await.unwrap();

    assert_eq!(texts(&pop_queue(&it.messages, "mail", 9).await), ["2"]);
}

/// The pop acks before anything is opened, and nothing else would bring the messages again.
#[tokio::test]
async fn a_pop_that_acks_what_it_cannot_open_leaves_it_to_consumers_with_the_key() {
    let options = || reveille::messages::MessagesOptions::default();
    let it = Fixture::with(options().encryption_key(1, [7; 32])).await;
    push(&it.messages, "mail", "plain").await;
    it.set("mail", "encrypted = true").await;
    let batch = pop_queue(&it.messages, "mail", 1).await;
    it.messages.complete(&batch).await.pop().unwrap().unwrap();
    let keyed = it.node_at(&it.db.url(), options().encryption_key(1, [7; 32])).await;
    push(&keyed, "mail", "secret").await;
    let keyless = it.node_at(&it.db.url(), options()).await;

    let refused = soon(keyless.pop(Pop::queue(queue("mail")).auto_ack())).await.unwrap_err();
    let opened = soon(keyed.pop(Pop::queue(queue("mail")).wait(WAIT))).await.unwrap().expect("it was put back");

    assert_eq!(refused.to_string(), "the encryption key 1 is not loaded");
    assert_eq!(texts(&opened), ["secret"]);
}

#[tokio::test]
async fn sealed_payloads_are_opened_and_without_the_key_nobody_gets_them_and_none_is_charged() {
    let options = || reveille::messages::MessagesOptions::default();
    let it = Fixture::with(options().encryption_key(1, [7; 32])).await;
    push(&it.messages, "mail", "plain").await;
    it.set("mail", "encrypted = true").await;
    let batch = pop_queue(&it.messages, "mail", 1).await;
    it.messages.complete(&batch).await.pop().unwrap().unwrap();
    // Another node remembers the options of the queue for a second.
    let keyed = it.node_at(&it.db.url(), options().encryption_key(1, [7; 32])).await;
    push(&keyed, "mail", "secret").await;
    let keyless = it.node_at(&it.db.url(), options()).await;

    let refused = soon(keyless.pop(Pop::queue(queue("mail")))).await.unwrap_err();
    keyless.close().await;
    let opened = pop_queue(&it.messages, "mail", 1).await;

    assert_eq!(refused.to_string(), "the encryption key 1 is not loaded");
    assert_eq!((texts(&opened), opened.partitions[0].deliveries), (vec!["secret".to_owned()], 1));
    let stored: Vec<Vec<u8>> = it
        .client()
        .await
        .query_one("select payloads from reveille.segment where last_seq = 2", &[])
        .await
        .unwrap()
        .get(0);
    assert!(!stored[0].windows(6).any(|part| part == b"secret"));
}

#[tokio::test]
async fn a_pop_that_waits_in_vain_ends_in_time() {
    let it = Fixture::new().await;
    push(&it.messages, "mail", "hello").await;
    pop_queue(&it.messages, "mail", 1).await;

    let popped = soon(it.messages.pop(Pop::queue(queue("mail")).wait(Duration::from_millis(50)))).await.unwrap();

    assert!(popped.is_none());
}
