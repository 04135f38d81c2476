//! Upkeep: retention, old transaction ids, repairs, leftovers.

use std::time::Duration;

use reveille::messages::{Browse, MessagesOptions, Page, Pop, PushOutcome, Subscriptions, Upkeep};
use uuid::{Builder, Uuid};

use crate::pop_kit::{Node, group, none, number, pop, pop_queue, push_to, stranded, texts};
use crate::settle_kit::complete;
use crate::support::{Fixture, item, queue, soon};

async fn segments(it: &Fixture) -> i64 {
    it.count("reveille.segment").await
}

#[tokio::test]
async fn what_is_older_than_its_retention_is_gone_and_its_space_comes_back() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["1", "2"]).await;
    push_to(&it.messages, "kept", "a", &["1"]).await;
    it.age(3600).await;
    push_to(&it.messages, "mail", "a", &["3"]).await;
    it.set("mail", "retention = interval '10 minutes'").await;

    let done = it.messages.upkeep().await.unwrap();

    assert_eq!((done.retired, done.segments, done.repairs), (2, 1, 0));
    assert_eq!(segments(&it).await, 2);
    assert_eq!(texts(&pop_queue(&it.messages, "mail", 9).await), ["3"]);
    assert_eq!(texts(&pop_queue(&it.messages, "kept", 9).await), ["1"]);
    let seen = it.messages.browse(&Browse::all().queue(queue("mail")), Page::default()).await.unwrap();
    assert_eq!(seen.len(), 1);
}

#[tokio::test]
async fn what_everybody_has_settled_is_kept_only_so_long() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["1"]).await;
    push_to(&it.messages, "mail", "a", &["2"]).await;
    it.age(3600).await;
    it.set("mail", "completed_retention = interval '10 minutes'").await;
    let of = |name: &str| Pop::queue(queue("mail")).group(group(name));
    assert_eq!(it.messages.upkeep().await.unwrap().retired, 0, "nobody has settled anything");

    complete(&it.messages, &pop(&it.messages, of("quick").batch(2)).await.unwrap()).await;
    complete(&it.messages, &pop(&it.messages, of("slow")).await.unwrap()).await;
    let done = it.messages.upkeep().await.unwrap();

    assert_eq!((done.retired, done.segments), (1, 1), "the slow group still needs the second");
    assert_eq!(texts(&pop(&it.messages, of("slow")).await.unwrap()), ["2"]);
}

#[tokio::test]
async fn what_has_waited_too_long_is_evicted_and_what_was_settled_is_kept() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["1", "2"]).await;
    push_to(&it.messages, "fax", "a", &["1"]).await;
    it.age(3600).await;
    for name in ["mail", "fax"] {
        it.set(name, "max_wait = interval '10 minutes'").await;
    }
    complete(&it.messages, &pop_queue(&it.messages, "fax", 1).await).await;
    push_to(&it.messages, "mail", "a", &["3"]).await;

    let done = it.messages.upkeep().await.unwrap();

    assert_eq!(done.retired, 2);
    assert_eq!(texts(&pop_queue(&it.messages, "mail", 9).await), ["3"]);
    assert_eq!(it.texts("fax", "a").await, ["1"]);
}

#[tokio::test]
async fn expired_messages_are_not_delivered_even_before_upkeep_and_their_space_comes_back() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["1"]).await;
    it.age(3600).await;
    it.set("mail", "ttl = interval '10 minutes'").await;

    none(&it.messages, "mail").await;
    let done = it.messages.upkeep().await.unwrap();

    assert_eq!((done.retired, segments(&it).await), (1, 0));
    push_to(&it.messages, "mail", "a", &["2"]).await;
    assert_eq!(texts(&pop_queue(&it.messages, "mail", 1).await), ["2"]);
}

#[tokio::test]
async fn a_lease_on_what_was_retired_ends_well() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["1", "2"]).await;
    it.age(3600).await;
    let batch = pop_queue(&it.messages, "mail", 1).await;
    it.set("mail", "retention = interval '10 minutes'").await;
    it.messages.upkeep().await.unwrap();

    complete(&it.messages, &batch).await;

    none(&it.messages, "mail").await;
    push_to(&it.messages, "mail", "a", &["3"]).await;
    assert_eq!(texts(&pop_queue(&it.messages, "mail", 9).await), ["3"]);
    assert_eq!(stranded(&it.client().await).await, 0);
}

#[tokio::test]
async fn transaction_ids_are_forgotten_when_their_window_is_over() {
    let it = Fixture::new().await;
    let sent = |text: &str| item("mail", "a", text).transaction_id(text);
    let growing = || (0..40).map(|_| Uuid::now_v7().to_string()).collect::<Vec<_>>();
    let [old_ones, young_ones] = [growing(), growing()];
    soon(it.messages.push(old_ones.iter().map(|id| sent(id)).collect())).await;
    soon(it.messages.push_one(sent("old"))).await.unwrap();
    it.age(3600).await;
    it.client().await.batch_execute("update reveille.dedup set until = clock_timestamp()").await.unwrap();
    it.client().await.batch_execute("update reveille.dedup_span set until = clock_timestamp()").await.unwrap();
    soon(it.messages.push(young_ones.iter().map(|id| sent(id)).collect())).await;
    soon(it.messages.push_one(sent("young"))).await.unwrap();

    let done = it.messages.upkeep().await.unwrap();

    let left = (it.count("reveille.dedup").await, it.count("reveille.dedup_span").await);
    assert_eq!((done.keys, left), (2, (1, 1)));
    for (id, known) in [("young", true), (&young_ones[7], true), ("old", false), (&old_ones[7], false)] {
        assert_eq!(it.messages.push_one(sent(id)).await.unwrap().is_duplicate(), known, "{id}");
    }
}

/// Where messages are kept for a shorter time than their transaction ids, the ids outlive them.
#[tokio::test]
async fn transaction_ids_are_remembered_when_their_messages_are_swept() {
    let it = Fixture::new().await;
    let sent = |text: &str| item("mail", "a", text).transaction_id(text);
    let mark_ready =
        |n: u64| Builder::from_unix_timestamp_millis(1_800_000_000_000 + n, &[7; 10]).into_uuid().to_string();
    let ids: Vec<String> = (0..700).map(mark_ready).chain([Uuid::new_v4().to_string(), "order 7".into()]).collect();
    let first = soon(it.messages.push(ids.iter().map(|id| sent(id)).collect())).await;
    let first: Vec<_> = first.into_iter().map(|pushed| pushed.unwrap().id).collect();
    it.age(1800).await;
    it.set("mail", "retention = interval '10 minutes'").await;

    let done = it.messages.upkeep().await.unwrap();

    assert_eq!((done.retired, it.count("reveille.segment").await), (702, 0));
    for (id, first) in ids.iter().zip(first) {
        let again = it.messages.push_one(sent(id)).await.unwrap();
        assert_eq!(again.outcome, PushOutcome::Duplicate { of: first }, "{id}");
    }
    it.client()
        .await
        .batch_execute("update reveille.dedup_run set until = until - interval '30 minutes'")
        .await
        .unwrap();
    assert!(!it.messages.push_one(sent(&ids[7])).await.unwrap().is_duplicate());
}

/// More than one step takes of them.
#[tokio::test]
async fn all_of_many_messages_are_swept_and_their_ids_are_known() {
    let it = Fixture::new().await;
    let sent = |n: u32| {
        let id = Builder::from_unix_timestamp_millis(1_800_000_000_000 + u64::from(n / 50), &id_bytes(n)).into_uuid();
        item("mail", &(n % 3).to_string(), "x").transaction_id(id.to_string())
    };
    for pushed in soon(it.messages.push((0..45_000).map(sent).collect())).await {
        pushed.unwrap();
    }
    soon(it.messages.purge(&queue("mail"))).await.unwrap();
    let before = segments(&it).await;

    let done = it.messages.upkeep().await.unwrap();

    assert_eq!((i64::try_from(done.segments).unwrap(), segments(&it).await), (before, 0));
    let again = soon(it.messages.push((0..45_000).step_by(997).map(sent).collect())).await;
    assert!(again.into_iter().all(|pushed| pushed.unwrap().is_duplicate()));
}

fn id_bytes(n: u32) -> [u8; 10] {
    let mut bytes = [7; 10];
    bytes[2..6].copy_from_slice(&n.to_be_bytes());
    bytes
}

/// The process that deletes it has not removed its partition rows yet.
#[tokio::test]
async fn upkeep_comes_to_an_end_while_a_deleted_queue_is_being_removed() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["1", "2"]).await;
    soon(it.messages.purge(&queue("mail"))).await.unwrap();
    it.client().await.batch_execute("delete from reveille.queue").await.unwrap();

    let done = soon(it.messages.upkeep()).await.unwrap();

    assert_eq!((done.retired, segments(&it).await), (0, 0));
}

#[tokio::test]
async fn upkeep_goes_in_steps_over_many_partitions() {
    let it = Fixture::new().await;
    let items = (0..2500).map(|n| item("mail", &n.to_string(), "x")).collect();
    for pushed in soon(it.messages.push(items)).await {
        pushed.unwrap();
    }
    it.age(3600).await;
    it.set("mail", "retention = interval '10 minutes'").await;

    let done = it.messages.upkeep().await.unwrap();

    assert_eq!((done.retired, done.segments, done.repairs), (2500, 2500, 0));
    assert_eq!(it.messages.upkeep().await.unwrap(), Upkeep::default());
}

#[tokio::test]
async fn stranded_messages_are_repaired_and_their_groups_woken_and_nothing_else_is_repaired() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["1", "2"]).await;
    complete(&it.messages, &pop_queue(&it.messages, "mail", 1).await).await;
    push_to(&it.messages, "mail", "b", &["3"]).await;
    while let Some(batch) = pop(&it.messages, Pop::queue(queue("mail"))).await {
        complete(&it.messages, &batch).await;
    }
    push_to(&it.messages, "mail", "a", &["4"]).await;
    assert_eq!(it.messages.upkeep().await.unwrap().repairs, 0);
    let node = Node::on(&it.db).await.proven().await;
    let client = it.client().await;
    let broken = "update reveille.partition_row set new_since = null; update reveille.cursor set due_at = null";
    client.batch_execute(broken).await.unwrap();
    let waiting = node.parked(Pop::queue(queue("mail"))).await;

    assert_eq!(stranded(&client).await, 1);
    assert_eq!(it.messages.upkeep().await.unwrap().repairs, 1);

    assert_eq!(texts(&soon(waiting).await.unwrap().unwrap()), ["4"]);
    assert_eq!(it.messages.upkeep().await.unwrap().repairs, 0);
    client.execute("delete from reveille.cursor", &[]).await.unwrap();
    assert_eq!(it.messages.upkeep().await.unwrap().repairs, 2, "two partitions had lost their cursors");
    assert_eq!(it.messages.figures().repairs, 3, "since the start");
    let report = it.messages.upkeep_reports().await.unwrap();
    let reconcile = report.iter().find(|task| task.name == "reconcile").unwrap();
    assert!(reconcile.figures.contains("\"repairs\": 2") && reconcile.done_at.is_some());
}

#[tokio::test]
async fn what_deleted_groups_and_queues_left_is_removed() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["1"]).await;
    push_to(&it.messages, "fax", "a", &["1"]).await;
    pop(&it.messages, Pop::queue(queue("mail")).group(group("billing"))).await.unwrap();
    let client = it.client().await;
    // As if the process that deleted them had died in the middle.
    client
        .batch_execute("delete from reveille.consumer_group; delete from reveille.queue where name = 'fax'")
        .await
        .unwrap();

    let done = it.messages.upkeep().await.unwrap();

    assert!(done.leftovers >= 4, "{done:?}");
    for table in ["partition", "partition_row", "segment"] {
        assert_eq!(it.count(&format!("reveille.{table}")).await, 1, "{table}");
    }
    assert_eq!(it.count("reveille.cursor").await, 0);
    it.messages.delete_group(None, &group("billing"), Subscriptions::Forget).await.unwrap();
}

#[tokio::test]
async fn of_many_processes_one_does_an_upkeep_task_that_is_due() {
    let it = Fixture::with(MessagesOptions::default().upkeep_interval(Duration::ZERO)).await;
    push_to(&it.messages, "mail", "a", &["1"]).await;
    it.age(3600).await;
    it.set("mail", "retention = interval '10 minutes'").await;
    let often = || MessagesOptions::default().upkeep_interval(Duration::from_millis(20));
    let url = it.db.url();
    let nodes = [it.node_at(&url, often()).await, it.node_at(&url, often()).await];
    let client = it.client().await;

    soon(async {
        while number(&client, "select count(*) from reveille.segment").await > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;

    for node in nodes {
        soon(node.close()).await;
    }
    let taken = "select count(*) from reveille.upkeep where done_at is not null and name = 'retention'";
    assert_eq!(number(&client, taken).await, 1);
}

#[tokio::test]
async fn a_busy_partition_does_not_make_upkeep_wait() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["1"]).await;
    it.age(3600).await;
    it.set("mail", "retention = interval '10 minutes'").await;
    let mut other = it.client().await;
    let held = other.transaction().await.unwrap();
    held.execute("select 1 from reveille.partition_row for update", &[]).await.unwrap();

    assert_eq!(soon(it.messages.upkeep()).await.unwrap().retired, 0);
    held.rollback().await.unwrap();
    assert_eq!(it.messages.upkeep().await.unwrap().retired, 1);
}
