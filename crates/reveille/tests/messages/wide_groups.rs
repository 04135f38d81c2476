//! Groups of queues with more partitions than one statement makes cursors for, and how many groups
//! a queue may have.
//!
//! Where a step must lie between two others, the test takes them itself, with the functions that
//! the library calls.

use reveille::messages::{MessagesError, MessagesOptions, Pop, Subscription, Subscriptions};
use tokio::task::JoinSet;
use tokio_postgres::Client;

use crate::pop_kit::{group, number, pop, push_to, stranded, texts};
use crate::support::{Fixture, queue, soon};

/// More than one step, and not a whole number of them.
const WIDE: i64 = 5000;

async fn wide() -> (Fixture, Client) {
    let it = Fixture::new().await;
    let client = it.client().await;
    let make =
        "select from reveille.ensure('wide', (select array_agg('p' || n) from generate_series(1, $1::bigint) n))";
    client.execute(make, &[&WIDE]).await.unwrap();
    (it, client)
}

fn ask(subscription: Subscription) -> Pop {
    Pop::queue(queue("wide")).group(group("g")).subscription(subscription).batch(99).partitions(99)
}

/// Begins a group that wants only new messages. Returns its id, and up to which partition its
/// cursors are to be created.
async fn begin(client: &Client) -> (i32, i32) {
    let begin =
        "select grp, through from reveille.register((select id from reveille.queue), 'g', 'new', null, 1000, 2000)";
    let row = client.query_one(begin, &[]).await.unwrap();
    (row.get(0), row.get(1))
}

async fn step(client: &Client, (group, through): (i32, i32), after: i32) -> Option<i32> {
    let step = "select reveille.make_cursors($1, $2, $3, 2000)";
    client.query_one(step, &[&group, &after, &through]).await.unwrap().get(0)
}

#[tokio::test]
async fn a_group_begins_in_many_partitions_where_it_says() {
    let (it, client) = wide().await;
    push_to(&it.messages, "wide", "p1", &["old"]).await;
    push_to(&it.messages, "wide", "p4999", &["old"]).await;

    assert!(pop(&it.messages, ask(Subscription::New)).await.is_none());
    push_to(&it.messages, "wide", "p4999", &["young"]).await;
    push_to(&it.messages, "wide", "later", &["of a partition that came later"]).await;

    let mut came = Vec::new();
    while let Some(batch) = pop(&it.messages, ask(Subscription::All)).await {
        came.extend(texts(&batch));
    }
    assert_eq!(came, ["young", "of a partition that came later"]);
    assert_eq!(it.count("reveille.cursor").await, WIDE + 1);
    assert_eq!(stranded(&client).await, 0);
}

#[tokio::test]
async fn many_who_begin_the_same_group_at_once_make_it_once() {
    let (it, client) = wide().await;
    let elsewhere = it.node().await;
    let mut popping = JoinSet::new();
    for messages in [&it.messages, &elsewhere].repeat(8) {
        let messages = messages.clone();
        popping.spawn(async move { messages.pop(ask(Subscription::All)).await });
    }

    for popped in soon(popping.join_all()).await {
        assert!(popped.unwrap().is_none());
    }

    assert_eq!(it.count("reveille.consumer_group").await, 1);
    assert_eq!(it.count("reveille.cursor").await, WIDE);
    assert_eq!(number(&client, "select count(*) from reveille.cursor_made").await, WIDE);
}

/// The message is pushed to a partition where the group has its cursor already, and the partition
/// is marked ready for the other groups before the queue knows this one.
#[tokio::test]
async fn what_is_pushed_and_marked_ready_between_two_steps_reaches_the_group() {
    let (it, client) = wide().await;
    let begun = begin(&client).await;
    let last = step(&client, begun, 0).await.unwrap();
    assert!(it.messages.groups(None, None).await.unwrap().is_empty(), "nobody knows it yet");

    push_to(&it.messages, "wide", "p1", &["between"]).await;
    let other = pop(&it.messages, Pop::queue(queue("wide")).group(group("other"))).await.unwrap();
    assert_eq!(texts(&other), ["between"]);
    let mut after = last;
    while let Some(last) = step(&client, begun, after).await {
        after = last;
    }
    client.execute("select reveille.finish_group($1, $2)", &[&begun.0, &begun.1]).await.unwrap();

    assert_eq!(texts(&pop(&it.messages, ask(Subscription::All)).await.unwrap()), ["between"]);
    assert_eq!(stranded(&client).await, 0);
}

#[tokio::test]
async fn a_partition_that_is_made_between_two_steps_belongs_to_the_group_from_its_beginning() {
    let (it, client) = wide().await;
    let begun = begin(&client).await;
    let last = step(&client, begun, 0).await.unwrap();

    push_to(&it.messages, "wide", "between", &["the first"]).await;
    let mut after = last;
    while let Some(last) = step(&client, begun, after).await {
        after = last;
    }
    push_to(&it.messages, "wide", "after the last step", &["the second"]).await;
    client.execute("select reveille.finish_group($1, $2)", &[&begun.0, &begun.1]).await.unwrap();

    let came = pop(&it.messages, ask(Subscription::New)).await.unwrap();
    assert_eq!(texts(&came), ["the first", "the second"]);
    assert_eq!(it.count("reveille.cursor").await, WIDE + 2);
}

/// One with a lower number than a partition that the steps have seen.
#[tokio::test]
async fn a_partition_whose_maker_commits_late_belongs_to_the_group() {
    let (it, client) = wide().await;
    let begun = begin(&client).await;
    let mut maker = it.client().await;
    let making = maker.transaction().await.unwrap();
    making.execute("select reveille.ensure('wide', array['late'])", &[]).await.unwrap();
    push_to(&it.messages, "wide", "early", &["one"]).await;
    let mut after = 0;
    while let Some(last) = step(&client, begun, after).await {
        after = last;
    }

    making.commit().await.unwrap();
    client.execute("select reveille.finish_group($1, $2)", &[&begun.0, &begun.1]).await.unwrap();

    assert_eq!(it.count("reveille.cursor").await, WIDE + 2);
    push_to(&it.messages, "wide", "late", &["two"]).await;
    let mut came = texts(&pop(&it.messages, ask(Subscription::New)).await.unwrap());
    came.sort();
    assert_eq!(came, ["one", "two"]);
}

#[tokio::test]
async fn a_group_whose_maker_died_is_finished_by_the_next_pop() {
    let (it, client) = wide().await;
    let begun = begin(&client).await;
    step(&client, begun, 0).await.unwrap();
    push_to(&it.messages, "wide", "p1", &["after its cursor was made"]).await;

    let came = pop(&it.messages, ask(Subscription::New)).await.unwrap();

    assert_eq!(texts(&came), ["after its cursor was made"]);
    assert_eq!(
        number(&client, "select id::bigint from reveille.consumer_group where settled").await,
        i64::from(begun.0)
    );
    assert_eq!(it.count("reveille.cursor").await, WIDE);
}

#[tokio::test]
async fn a_group_that_nobody_finishes_is_removed_by_upkeep_and_with_its_queue() {
    let (it, client) = wide().await;
    step(&client, begin(&client).await, 0).await.unwrap();

    it.messages.upkeep().await.unwrap();
    assert_eq!((it.count("reveille.consumer_group").await, it.count("reveille.cursor").await), (1, 2000), "not yet");
    client
        .execute("update reveille.consumer_group set created_at = created_at - interval '2 hours'", &[])
        .await
        .unwrap();
    it.messages.upkeep().await.unwrap();
    it.messages.upkeep().await.unwrap();
    assert_eq!((it.count("reveille.consumer_group").await, it.count("reveille.cursor").await), (0, 0));

    let begun = begin(&client).await;
    assert!(soon(it.messages.delete_queue(&queue("wide"))).await.unwrap());
    let known = client.query_one("select reveille.finish_group($1, $2)", &[&begun.0, &begun.1]).await.unwrap();
    assert_eq!((known.get::<_, bool>(0), it.count("reveille.consumer_group").await), (false, 0));
}

#[tokio::test]
async fn a_queue_has_no_more_groups_than_it_may() {
    let it = Fixture::with(MessagesOptions::default().groups_max(2)).await;
    push_to(&it.messages, "mail", "a", &["1"]).await;
    push_to(&it.messages, "fax", "a", &["1"]).await;
    let ask = |name: &str| Pop::queue(queue("mail")).group(group(name));
    for name in ["g1", "g2"] {
        pop(&it.messages, ask(name)).await.unwrap();
    }

    let refused = soon(it.messages.pop(ask("g3"))).await.unwrap_err();

    assert_eq!(refused.to_string(), "the queue \"mail\" has 2 consumer groups already, and may have no more");
    assert!(matches!(refused, MessagesError::TooManyGroups { limit: 2, .. }));
    assert!(pop(&it.messages, ask("g2")).await.is_none(), "those it has go on");
    pop(&it.messages, Pop::queue(queue("fax")).group(group("g3"))).await.unwrap();
    it.messages.delete_group(None, &group("g1"), Subscriptions::Forget).await.unwrap();
    assert_eq!(texts(&pop(&it.messages, ask("g3")).await.unwrap()), ["1"]);
}
