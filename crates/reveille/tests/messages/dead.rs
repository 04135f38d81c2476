//! Dead letters: listed, filtered, sent back, deleted.

use std::time::{Duration, SystemTime};

use reveille::messages::{
    Batch, DeadLetterId, DeadLetters, Messages, MessagesError, MessagesOptions, Page, Pop, PushItem, Settlement,
    Subscriptions,
};
use reveille::uuid::Uuid;

use crate::pop_kit::{Node, group, none, pop, pop_queue, push_to, stranded, texts};
use crate::settle_kit::{DEAD, complete, settle};
use crate::support::{Fixture, item, partition, queue, soon};

/// Pop every message of a group, and make each a dead letter.
async fn bury_all(messages: &Messages, queue_name: &str, group_name: &str) {
    while let Some(batch) = pop(messages, Pop::queue(queue(queue_name)).group(group(group_name))).await {
        let (lease, message) = (&batch.partitions[0], batch.messages().next().unwrap());
        let error = format!("Broken {}", message.seq);
        assert_eq!(settle(messages, Settlement::dead(lease, message.seq, error)).await, DEAD);
    }
}

async fn listed(messages: &Messages, which: &DeadLetters) -> (Vec<String>, i64) {
    let page = soon(messages.dead_letters(which, Page::default())).await.unwrap();
    let text = |letter: &reveille::messages::DeadLetter| {
        String::from_utf8(letter.payload.as_ref().unwrap().as_bytes().to_vec()).unwrap()
    };
    (page.letters.iter().map(text).collect(), page.total)
}

#[tokio::test]
async fn a_letter_says_what_went_wrong_with_what() {
    let it = Fixture::new().await;
    let trace = Uuid::from_u128(9);
    let sent = PushItem::new(queue("mail"), "hello".to_owned()).transaction_id("t-1").trace_id(trace).producer("me");
    let pushed = it.messages.push_one(sent).await.unwrap();
    bury_all(&it.messages, "mail", "billing").await;

    let page = it.messages.dead_letters(&DeadLetters::all(), Page::default()).await.unwrap();

    let letter = &page.letters[0];
    assert_eq!((page.total, letter.seq, letter.failures, letter.deliveries), (1, 1, 0, 1));
    assert_eq!((letter.message_id, letter.transaction_id.as_str()), (pushed.id, "t-1"));
    assert_eq!((letter.trace_id, letter.producer.as_deref()), (Some(trace), Some("me")));
    assert_eq!((letter.queue.as_str(), letter.partition.as_str()), ("mail", "Default"));
    assert_eq!((letter.group.clone(), Some(letter.partition_uid)), (Some(group("billing")), pushed.partition_uid));
    assert_eq!(
        (letter.error.as_deref(), letter.payload.as_ref().unwrap().as_bytes()),
        (Some("Broken 1"), &b"hello"[..])
    );
    assert!(letter.dead_at >= letter.pushed_at);
}

#[tokio::test]
async fn letters_are_filtered_and_paged_with_a_total() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["a1", "a2"]).await;
    push_to(&it.messages, "mail", "b", &["b1"]).await;
    push_to(&it.messages, "fax", "a", &["f1"]).await;
    bury_all(&it.messages, "mail", "billing").await;
    bury_all(&it.messages, "fax", "billing").await;
    bury_all(&it.messages, "fax", "audit").await;
    let all = DeadLetters::all;
    let now = it.now().await;

    let messages = &it.messages;
    let count = |which: DeadLetters| async move { listed(messages, &which).await.1 };
    assert_eq!(count(all()).await, 5);
    assert_eq!(count(all().queue(queue("mail"))).await, 3);
    assert_eq!(count(all().group(group("audit"))).await, 1);
    assert_eq!(count(all().queue(queue("mail")).partition(partition("b"))).await, 1);
    assert_eq!(count(all().text("bROKEN 2")).await, 1);
    assert_eq!(count(all().text("%")).await, 0, "a text is a text, not a pattern");
    assert_eq!(count(all().since(now + Duration::from_secs(3600))).await, 0);
    assert_eq!(count(all().before(now + Duration::from_secs(3600))).await, 5);
    assert_eq!(count(all().since(SystemTime::UNIX_EPOCH - Duration::from_secs(1 << 40))).await, 5);
    let page = it.messages.dead_letters(&all(), Page::new(2, 4).unwrap()).await.unwrap();
    assert_eq!((page.letters.len(), page.total), (1, 5));
    let page = it.messages.dead_letters(&all(), Page::new(2, 9).unwrap()).await.unwrap();
    assert_eq!((page.letters.len(), page.total), (0, 5));
    assert!(matches!(Page::new(1001, 0), Err(MessagesError::OutOfRange { .. })));
    let refused = it.messages.dead_letters(&all().text("a\0"), Page::default()).await;
    assert!(matches!(refused, Err(MessagesError::Nul { .. })));
}

#[tokio::test]
async fn a_page_is_bounded_by_bytes_and_the_next_one_goes_on() {
    let it = Fixture::with(MessagesOptions::default().payload_bytes_max(32 << 20)).await;
    for size in [17, 6, 6, 6] {
        push_to(&it.messages, "mail", "a", &[&"x".repeat(size << 20)]).await;
    }
    bury_all(&it.messages, "mail", "billing").await;
    let messages = &it.messages;
    let sizes = |offset| async move {
        let page = messages.dead_letters(&DeadLetters::all(), Page::new(100, offset).unwrap()).await.unwrap();
        let of = |letter: &reveille::messages::DeadLetter| letter.payload.as_ref().unwrap().len() >> 20;
        (page.letters.iter().map(of).collect::<Vec<_>>(), page.total)
    };

    assert_eq!(sizes(0).await, (vec![6, 6], 4));
    assert_eq!(sizes(2).await, (vec![6], 4));
    assert_eq!(sizes(3).await, (vec![17], 4), "what is larger than a page comes alone");
}

#[tokio::test]
async fn a_redriven_message_comes_again_to_its_own_group_alone_behind_what_came_meanwhile() {
    let it = Fixture::new().await;
    let sent = it.messages.push_one(item("mail", "a", "bad").transaction_id("t-1")).await.unwrap();
    bury_all(&it.messages, "mail", "billing").await;
    let audit = pop(&it.messages, Pop::queue(queue("mail")).group(group("audit"))).await.unwrap();
    complete(&it.messages, &audit).await;
    push_to(&it.messages, "mail", "a", &["next"]).await;

    assert_eq!(it.messages.redrive_all(&DeadLetters::all().group(group("billing"))).await.unwrap(), 1);
    push_to(&it.messages, "mail", "a", &["last"]).await;

    let of = |name: &'static str| Pop::queue(queue("mail")).group(group(name)).batch(10);
    let again = pop(&it.messages, of("billing")).await.unwrap();
    assert_eq!(texts(&again), ["next", "bad", "last"]);
    let redriven = again.messages().nth(1).unwrap();
    assert_eq!((redriven.id, redriven.transaction_id.as_str(), redriven.seq), (sent.id, "t-1", 3));
    complete(&it.messages, &again).await;
    assert_eq!(texts(&pop(&it.messages, of("audit")).await.unwrap()), ["next", "last"]);
    assert_eq!(it.count("reveille.dead_letter").await, 0);
    assert_eq!(stranded(&it.client().await).await, 0);
    assert!(it.messages.push_one(item("mail", "a", "bad").transaction_id("t-1")).await.unwrap().is_duplicate());
}

#[tokio::test]
async fn to_other_groups_a_redriven_message_is_nothing_at_all() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["bad"]).await;
    bury_all(&it.messages, "mail", "billing").await;
    let audit = pop(&it.messages, Pop::queue(queue("mail")).group(group("audit"))).await.unwrap();
    complete(&it.messages, &audit).await;

    it.messages.redrive_all(&DeadLetters::all()).await.unwrap();

    let nothing = pop(&it.messages, Pop::queue(queue("mail")).group(group("audit"))).await;
    assert!(nothing.is_none(), "{nothing:?}");
}

#[tokio::test]
async fn a_redrive_wakes_waiting_pops_on_every_node() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["bad"]).await;
    bury_all(&it.messages, "mail", "billing").await;
    for node in [Node::on(&it.db).await.proven().await, Node::on(&it.db).await.proven().await] {
        let waiting = node.parked(Pop::queue(queue("mail")).group(group("billing"))).await;

        it.messages.redrive_all(&DeadLetters::all()).await.unwrap();

        let batch: Batch = soon(waiting).await.unwrap().unwrap();
        assert_eq!(texts(&batch), ["bad"]);
        let seq = batch.messages().next().unwrap().seq;
        settle(&it.messages, Settlement::dead(&batch.partitions[0], seq, "again")).await;
    }
}

#[tokio::test]
async fn many_large_letters_of_several_groups_are_redriven_in_order_and_none_twice() {
    let it = Fixture::new().await;
    let big = "x".repeat(300_000);
    let payloads: Vec<String> = (0..20).map(|n| format!("{n:02} {big}")).collect();
    let items = payloads.iter().map(|payload| item("mail", "a", payload)).collect();
    for pushed in soon(it.messages.push(items)).await {
        pushed.unwrap();
    }
    bury_all(&it.messages, "mail", "billing").await;
    bury_all(&it.messages, "mail", "audit").await;
    let ids: Vec<DeadLetterId> = it
        .messages
        .dead_letters(&DeadLetters::all(), Page::default())
        .await
        .unwrap()
        .letters
        .iter()
        .map(|l| l.id)
        .collect();

    let (one, other) = tokio::join!(it.messages.redrive(&ids), it.messages.redrive(&ids));

    assert_eq!(one.unwrap() + other.unwrap(), 40);
    for name in ["billing", "audit"] {
        let mut seen = Vec::new();
        while let Some(batch) = pop(&it.messages, Pop::queue(queue("mail")).group(group(name)).batch(100)).await {
            seen.extend(texts(&batch));
            complete(&it.messages, &batch).await;
        }
        assert_eq!(seen, payloads, "{name}");
    }
}

#[tokio::test]
async fn a_sealed_letter_is_redriven_sealed_and_read_with_its_key_alone() {
    let it = Fixture::with(MessagesOptions::default().encryption_key(1, [7; 32])).await;
    push_to(&it.messages, "mail", "a", &["first"]).await;
    it.set("mail", "encrypted = true").await;
    let keyed = it.node_at(&it.db.url(), MessagesOptions::default().encryption_key(1, [7; 32])).await;
    push_to(&keyed, "mail", "a", &["secret"]).await;
    bury_all(&keyed, "mail", "billing").await;
    let keyless = it.node().await;

    let page = keyless.dead_letters(&DeadLetters::all().text("Broken 2"), Page::default()).await.unwrap();
    assert_eq!((page.letters[0].payload.clone(), page.total), (None, 1));
    keyless.redrive_all(&DeadLetters::all()).await.unwrap();

    let batch = pop(&keyed, Pop::queue(queue("mail")).group(group("billing")).batch(10)).await.unwrap();
    assert_eq!(texts(&batch), ["first", "secret"]);
    assert_eq!(it.count("reveille.segment where position('secret'::bytea in payloads[1]) > 0").await, 0);
}

#[tokio::test]
async fn letters_outlive_their_group_and_are_not_redriven_into_nothing() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["bad"]).await;
    bury_all(&it.messages, "mail", "billing").await;
    it.messages.delete_group(None, &group("billing"), Subscriptions::Forget).await.unwrap();

    let page = it.messages.dead_letters(&DeadLetters::all(), Page::default()).await.unwrap();
    assert_eq!((page.total, page.letters[0].group.clone()), (1, None));
    assert_eq!(it.messages.redrive(&[page.letters[0].id]).await.unwrap(), 0);
    assert_eq!(it.messages.redrive_all(&DeadLetters::all()).await.unwrap(), 0);
    assert_eq!(it.messages.redrive(&[DeadLetterId(i64::MAX), DeadLetterId(i64::MIN)]).await.unwrap(), 0);

    assert_eq!(it.messages.delete_dead_letters(&[page.letters[0].id]).await.unwrap(), 1);
    assert_eq!(it.messages.delete_dead_letters(&[page.letters[0].id]).await.unwrap(), 0);
}

#[tokio::test]
async fn letters_are_deleted_by_the_same_filters() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["1", "2"]).await;
    push_to(&it.messages, "fax", "a", &["3"]).await;
    bury_all(&it.messages, "mail", "billing").await;
    bury_all(&it.messages, "fax", "billing").await;

    assert_eq!(it.messages.delete_all_dead_letters(&DeadLetters::all().queue(queue("mail"))).await.unwrap(), 2);

    assert_eq!(listed(&it.messages, &DeadLetters::all()).await, (vec!["3".to_owned()], 1));
}

#[tokio::test]
async fn the_plain_queue_gives_up_too() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["1"]).await;
    let batch = pop_queue(&it.messages, "mail", 1).await;
    settle(&it.messages, Settlement::dead(&batch.partitions[0], 1, "no")).await;
    none(&it.messages, "mail").await;

    it.messages.redrive_all(&DeadLetters::all()).await.unwrap();

    assert_eq!(texts(&pop_queue(&it.messages, "mail", 1).await), ["1"]);
}
