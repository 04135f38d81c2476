//! Where consumer groups begin.

use std::time::{Duration, SystemTime};

use reveille::messages::{Pop, Subscription};

use crate::pop_kit::{group, none, number, pop, pop_queue, push_to, texts};
use crate::support::{Fixture, push, queue};

fn ask(name: &str, subscription: Subscription) -> Pop {
    Pop::queue(queue("mail")).group(group(name)).subscription(subscription).batch(99).partitions(99)
}

#[tokio::test]
async fn a_group_begins_where_its_first_pop_says_and_later_pops_do_not_change_it() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["old"]).await;
    assert!(pop(&it.messages, ask("new", Subscription::New)).await.is_none());

    push_to(&it.messages, "mail", "a", &["young"]).await;
    push_to(&it.messages, "mail", "later", &["of a partition that came later"]).await;
    let all = pop(&it.messages, ask("all", Subscription::All)).await.unwrap();
    let new = pop(&it.messages, ask("new", Subscription::All)).await.unwrap();

    assert_eq!(texts(&all), ["old", "young", "of a partition that came later"]);
    assert_eq!(texts(&new), ["young", "of a partition that came later"]);
}

#[tokio::test]
async fn a_group_can_begin_at_a_time() {
    let it = Fixture::new().await;
    for payload in ["1", "2", "3"] {
        push_to(&it.messages, "mail", "a", &[payload]).await;
    }
    push_to(&it.messages, "mail", "b", &["long ago"]).await;
    let age = "update reveille.segment set at = clock_timestamp() - make_interval(hours => (10 - 3 * last_seq)::int)";
    it.client().await.execute(age, &[]).await.unwrap();
    let clock = it.client().await.query_one("select clock_timestamp()", &[]).await.unwrap().get::<_, SystemTime>(0);
    let from = clock - Duration::from_secs(5 * 3600);

    let batch = pop(&it.messages, ask("late", Subscription::From(from))).await.unwrap();
    let far = clock + Duration::from_secs(3600);
    let nothing = pop(&it.messages, ask("later", Subscription::From(far))).await;

    assert_eq!(texts(&batch), ["2", "3"]);
    assert!(nothing.is_none());
}

#[tokio::test]
async fn consumers_of_a_plain_queue_get_everything_whatever_they_say() {
    let it = Fixture::new().await;
    push(&it.messages, "mail", "old").await;

    let batch = pop(&it.messages, Pop::queue(queue("mail")).subscription(Subscription::New)).await.unwrap();

    assert_eq!(texts(&batch), ["old"]);
}

#[tokio::test]
async fn a_group_is_registered_once_however_many_begin_at_the_same_time() {
    let it = Fixture::new().await;
    for name in ["a", "b", "c"] {
        push_to(&it.messages, "mail", name, &[name]).await;
    }
    let nodes = [it.node().await, it.node().await, it.messages.clone()];

    let pops = nodes.iter().map(|node| pop(node, Pop::queue(queue("mail")).group(group("g"))));
    let popped = futures_util::future::join_all(pops).await;

    let mut all: Vec<String> = popped.iter().flatten().flat_map(texts).collect();
    let mut rest = pop(&it.messages, ask("g", Subscription::All)).await;
    all.extend(rest.take().iter().flat_map(texts));
    all.sort_unstable();
    assert_eq!(all, ["a", "b", "c"]);
    assert_eq!(number(&it.client().await, "select count(*) from reveille.consumer_group").await, 1);
}

#[tokio::test]
async fn a_group_that_was_deleted_behind_our_back_is_re_created_by_the_next_pop() {
    let it = Fixture::new().await;
    push(&it.messages, "mail", "hello").await;
    let first = pop_queue(&it.messages, "mail", 1).await;
    it.messages.complete(&first).await.pop().unwrap().unwrap();
    none(&it.messages, "mail").await;

    it.client().await.batch_execute("delete from reveille.consumer_group; delete from reveille.cursor").await.unwrap();

    assert_eq!(texts(&pop_queue(&it.messages, "mail", 1).await), ["hello"]);
}
