//! Queues as a whole: options, limits, lists, and their end.

use std::time::Duration;

use reveille::database::{Database, DatabaseOptions, StatementMode};
use reveille::messages::{
    Messages, MessagesError, MessagesOptions, Pop, PushOutcome, QueueDescription, QueueList, QueueOptions,
};
use reveille_testkit::{LoginSettings, Pooler};
use tokio::task::JoinSet;

use crate::pop_kit::{pop, push_to, texts};
use crate::support::{Fixture, item, partition, push, queue, seqs, soon};

async fn configure(messages: &Messages, name: &str, options: QueueOptions) -> QueueDescription {
    soon(messages.configure(&queue(name), &options)).await.unwrap()
}

#[tokio::test]
async fn configuring_changes_what_is_named_and_leaves_the_rest() {
    let fixture = Fixture::new().await;
    let lease = Duration::from_secs(7);

    configure(&fixture.messages, "mail", QueueOptions::default().lease(lease).retry_limit(9).namespace("n")).await;
    let merged = configure(&fixture.messages, "mail", QueueOptions::default().retry_limit(1).encrypted(true)).await;
    let replaced = configure(&fixture.messages, "mail", QueueOptions::default().max_size(5).replace()).await;

    assert_eq!((merged.lease, merged.retry_limit, merged.encrypted, &*merged.namespace), (lease, 1, true, "n"));
    assert_eq!((replaced.lease, replaced.retry_limit, replaced.encrypted), (Duration::from_secs(60), 3, false));
    assert_eq!((replaced.max_size, &*replaced.namespace), (5, ""));
    assert_eq!(replaced.uid, merged.uid);
}

#[tokio::test]
async fn a_queue_that_is_configured_without_options_is_like_one_made_by_a_push() {
    let fixture = Fixture::new().await;
    push(&fixture.messages, "shop.orders.eu", "x").await;

    let mut made = soon(fixture.messages.queue(&queue("shop.orders.eu"))).await.unwrap().unwrap();
    let replaced = configure(&fixture.messages, "shop.orders.eu", QueueOptions::default().replace()).await;

    assert_eq!((&*made.namespace, &*made.task), ("shop", "orders.eu"));
    assert_eq!((made.partitions, made.messages), (Some(1), Some(1)));
    (made.partitions, made.messages) = (None, None);
    assert_eq!(made, replaced);
}

#[tokio::test]
async fn what_an_option_cannot_be_is_refused_in_words() {
    let fixture = Fixture::new().await;
    let options = QueueOptions::default;
    let refused = [
        (options().retry_limit(-1), "the retry limit must be 0 to 2147483647, not -1"),
        (options().max_deliveries(0), "the number of deliveries must be 1 to 2147483647, not 0"),
        (options().max_size(i64::MIN), "the size of the queue must be 0 or more, not -9223372036854775808"),
        (options().priority(i64::MAX), "the priority must be -2147483648 to 2147483647, not 9223372036854775807"),
        (options().lease(Duration::ZERO), "the lease time must be at least 1 ms, not 0ns"),
        (options().ttl(Duration::MAX), "the time to live must be at most ten years, not 18446744073709551615 seconds"),
        (options().namespace("a\0b"), "the namespace contains a NUL character"),
        (options().task("x".repeat(513)), "the task must be at most 512 bytes long, not 513 bytes long"),
    ];
    for (options, words) in refused {
        let error = soon(fixture.messages.configure(&queue("mail"), &options)).await.unwrap_err();
        assert_eq!(error.to_string(), words);
    }
    let extreme = options().retry_limit(i64::from(i32::MAX)).max_size(i64::MAX).priority(i64::from(i32::MIN));
    let kept = configure(&fixture.messages, "mail", extreme).await;
    assert_eq!((kept.retry_limit, kept.max_size, kept.priority), (i32::MAX, i64::MAX, i32::MIN));
    push(&fixture.messages, "mail", "x").await;
}

#[tokio::test]
async fn a_full_queue_refuses_what_is_too_much_and_takes_more_once_the_slowest_group_has_consumed() {
    let fixture = Fixture::new().await;
    let messages = &fixture.messages;
    configure(messages, "mail", QueueOptions::default().max_size(3)).await;

    let first = soon(messages.push((0..5).map(|n| item("mail", "a", &n.to_string())).collect())).await;
    let elsewhere = soon(messages.push_one(item("other", "a", "x"))).await;
    let batch = soon(messages.pop(Pop::queue(queue("mail")).batch(2).auto_ack())).await.unwrap().unwrap();
    let later = soon(messages.push((5..8).map(|n| item("mail", "b", &n.to_string())).collect())).await;

    assert_eq!(seqs(&first[..3]), [1, 2, 3]);
    assert!(first[3..].iter().all(|answer| matches!(answer, Err(MessagesError::QueueFull { .. }))));
    assert_eq!(first[4].as_ref().unwrap_err().to_string(), "the queue \"mail\" is full");
    assert!(elsewhere.is_ok());
    assert_eq!(batch.len(), 2);
    assert_eq!(seqs(&later[..2]), [1, 2]);
    assert!(later[2].is_err());
}

#[tokio::test]
async fn queues_are_listed_by_name_with_what_they_hold() {
    let fixture = Fixture::new().await;
    let messages = &fixture.messages;
    for name in ["shop.orders", "shop.mail", "crm.mail", "plain"] {
        soon(messages.push(vec![item(name, "a", "1"), item(name, "b", "2"), item(name, "b", "3")])).await;
    }
    let names = async |list: QueueList| -> Vec<String> {
        soon(messages.queues(&list)).await.unwrap().iter().map(|found| found.name.to_string()).collect()
    };

    assert_eq!(names(QueueList::new()).await, ["crm.mail", "plain", "shop.mail", "shop.orders"]);
    assert_eq!(names(QueueList::new().namespace("shop")).await, ["shop.mail", "shop.orders"]);
    assert_eq!(names(QueueList::new().task("mail")).await, ["crm.mail", "shop.mail"]);
    assert_eq!(names(QueueList::new().text("ain").limit(0)).await, ["plain"]);
    assert_eq!(names(QueueList::new().after(queue("plain")).limit(1)).await, ["shop.mail"]);
    let held = &soon(messages.queues(&QueueList::new())).await.unwrap()[0];
    assert_eq!((held.partitions, held.messages), (Some(2), Some(3)));
    let spaces = soon(messages.namespaces()).await.unwrap();
    assert_eq!(spaces.iter().map(|space| (&*space.name, space.queues)).collect::<Vec<_>>(), [("crm", 1), ("shop", 2)]);
    let tasks = soon(messages.tasks()).await.unwrap();
    assert_eq!(tasks.iter().map(|task| (&*task.name, task.queues)).collect::<Vec<_>>(), [("mail", 2), ("orders", 1)]);
}

#[tokio::test]
async fn a_purged_queue_delivers_nothing_that_was_pushed_before() {
    let fixture = Fixture::new().await;
    let messages = &fixture.messages;
    soon(messages.push(vec![item("mail", "a", "1"), item("mail", "b", "2")])).await;
    fixture.client().await.batch_execute("select reveille.push('mail', '3')").await.unwrap();

    let purged = soon(messages.purge(&queue("mail"))).await.unwrap();
    let nothing = soon(messages.pop(Pop::queue(queue("mail")).batch(10))).await.unwrap();
    push(messages, "mail", "4").await;
    let after = soon(messages.pop(Pop::queue(queue("mail")).batch(10))).await.unwrap().unwrap();

    assert_eq!(purged, 3);
    assert!(nothing.is_none());
    assert_eq!(after.messages().map(|message| message.payload.as_bytes()).collect::<Vec<_>>(), [b"4"]);
    let unknown = soon(messages.purge(&queue("unknown"))).await.unwrap_err();
    assert_eq!(unknown.to_string(), "there is no queue \"unknown\"");
}

#[tokio::test]
async fn a_deleted_queue_leaves_nothing_and_can_be_created_again() {
    let fixture = Fixture::new().await;
    let messages = &fixture.messages;
    let other = fixture.node().await;
    let grows = uuid::Uuid::now_v7().to_string();
    let id = |n| if n % 2 == 0 { grows.as_str() } else { "t" };
    soon(other.push((0..300).map(|n| item("mail", &format!("p{n}"), "x").transaction_id(id(n))).collect())).await;
    soon(messages.pop(Pop::queue(queue("mail")).partitions(3).batch(10))).await.unwrap();
    fixture.client().await.batch_execute("select reveille.push('mail', '3')").await.unwrap();
    push(messages, "kept", "x").await;

    let deleted = soon(messages.delete_queue(&queue("mail"))).await.unwrap();
    let again = soon(messages.delete_queue(&queue("mail"))).await.unwrap();

    assert_eq!((deleted, again), (true, false));
    for table in ["queue", "partition", "partition_row", "segment"] {
        assert_eq!(fixture.count(&format!("reveille.{table}")).await, 1, "{table}");
    }
    for table in ["cursor", "consumer_group", "dedup", "dedup_run", "dedup_span", "outbox"] {
        assert_eq!(fixture.count(&format!("reveille.{table}")).await, 0, "{table}");
    }
    // The other node remembers rows that are gone.
    let pushed = soon(other.push_one(item("mail", "p1", "y").transaction_id("t"))).await.unwrap();
    assert_eq!(pushed.outcome, PushOutcome::Stored { seq: 1 });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_deleted_under_load_answers_every_push_and_loses_none_that_came_after() {
    let fixture = Fixture::new().await;
    let mut producers = JoinSet::new();
    for producer in 0..4 {
        let node = if producer % 2 == 0 { fixture.messages.clone() } else { fixture.node().await };
        producers.spawn(async move {
            for n in 0..100 {
                let pushed = node.push_one(item("mail", &format!("p{}", n % 5), "x")).await;
                assert!(matches!(&pushed, Ok(_) | Err(MessagesError::NoQueue { .. })), "{pushed:?}");
            }
        });
    }
    for _ in 0..5 {
        soon(fixture.messages.delete_queue(&queue("mail"))).await.unwrap();
    }
    soon(producers.join_all()).await;

    let last = soon(fixture.messages.push_one(item("mail", "p0", "last"))).await.unwrap();

    assert!(matches!(last.outcome, PushOutcome::Stored { .. }));
    assert_eq!(fixture.texts("mail", "p0").await.last().unwrap(), "last");
    assert_eq!(
        fixture
            .count(
                "reveille.partition_row where not exists (select from reveille.queue where id = partition_row.queue)"
            )
            .await,
        0
    );
    assert_eq!(
        fixture
            .count("reveille.segment s where not exists (select from reveille.partition_row h where h.partition = s.partition)")
            .await,
        0
    );
}

#[tokio::test]
async fn a_paused_queue_is_pushed_to_and_not_popped_from() {
    let fixture = Fixture::new().await;
    let messages = &fixture.messages;
    push(messages, "mail", "1").await;

    assert!(soon(messages.pause(&queue("mail"))).await.unwrap().paused);
    push(messages, "mail", "2").await;
    let nothing = soon(messages.pop(Pop::queue(queue("mail")).batch(10))).await.unwrap();
    assert!(!soon(messages.resume(&queue("mail"))).await.unwrap().paused);
    let both = soon(messages.pop(Pop::queue(queue("mail")).batch(10))).await.unwrap().unwrap();

    assert!(nothing.is_none());
    assert_eq!(both.len(), 2);
    let unknown = soon(messages.pause(&queue("unknown"))).await.unwrap_err();
    assert_eq!(unknown.to_string(), "there is no queue \"unknown\"");
}

#[tokio::test]
async fn behind_a_transaction_pooler_everything_about_pushing_works() {
    let fixture = Fixture::new().await;
    let Some(pooler) = Pooler::before(&fixture.db, 4, LoginSettings::Refused) else { return };
    let options = DatabaseOptions::new(pooler.url()).statement_mode(StatementMode::Pooled);
    let database = soon(Database::connect(options)).await.unwrap();
    let messages = Messages::new(&database, MessagesOptions::default());
    let named = |payload: &str, id: &str| item("mail", "a", payload).transaction_id(id);

    configure(&messages, "mail", QueueOptions::default().max_size(100)).await;
    soon(messages.push(vec![named("one", "x"), item("mail", "b", "two"), item("new", "a", "three")])).await;
    let again = soon(messages.push(vec![named("one", "x"), named("four", "y")])).await;
    fixture.client().await.batch_execute("select reveille.push('mail', 'five', 'a')").await.unwrap();
    soon(messages.push_one(named("six", "z"))).await.unwrap();

    assert!(again[0].as_ref().unwrap().is_duplicate());
    assert_eq!(fixture.texts("mail", "a").await, ["one", "four", "five", "six"]);
    assert!(soon(messages.delete_queue(&queue("mail"))).await.unwrap());
}

#[tokio::test]
async fn a_partition_of_a_queue_that_was_re_created_elsewhere_is_found() {
    let fixture = Fixture::new().await;
    let (here, elsewhere) = (&fixture.messages, fixture.node().await);
    let wanted = || Pop::partition(queue("mail"), partition("a"));
    push_to(here, "mail", "b", &["before"]).await;
    assert!(pop(here, wanted()).await.is_none(), "the partition is not there yet");
    assert!(soon(elsewhere.delete_queue(&queue("mail"))).await.unwrap());

    push_to(here, "mail", "a", &["anew"]).await;

    assert_eq!(texts(&pop(here, wanted()).await.expect("a message")), ["anew"]);
}

#[tokio::test]
async fn a_pop_of_a_namespace_that_does_not_wait_gets_what_comes_behind_a_purge() {
    let fixture = Fixture::new().await;
    let messages = &fixture.messages;
    push_to(messages, "shop.bills", "a", &["bill"]).await;
    push_to(messages, "shop.orders", "a", &["purged"]).await;
    assert_eq!(texts(&pop(messages, Pop::namespace("shop").auto_ack()).await.expect("a message")), ["bill"]);
    assert_eq!(soon(messages.purge(&queue("shop.orders"))).await.unwrap(), 1);
    push_to(messages, "shop.orders", "b", &["order"]).await;

    let popped = pop(messages, Pop::namespace("shop")).await;

    assert_eq!(texts(&popped.expect("a message")), ["order"]);
}
