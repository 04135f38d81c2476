//! Groups as an operator sees them.

use std::time::Duration;

use reveille::messages::{
    Available, Began, DeletedGroup, GroupState, Messages, Pop, Settled, Settlement, Subscription, Subscriptions,
};

use crate::pop_kit::{Node, group, none, pop, pop_queue, push_to, stranded, texts};
use crate::settle_kit::{complete, settle};
use crate::support::{Fixture, partition, queue, soon};

async fn pop_as(messages: &Messages, name: &str, batch: u32) -> Option<reveille::messages::Batch> {
    pop(messages, Pop::queue(queue("mail")).group(group(name)).batch(batch)).await
}

#[tokio::test]
async fn lag_is_counted_in_messages_and_in_time() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["1", "2", "3"]).await;
    push_to(&it.messages, "mail", "b", &["4"]).await;
    it.age(600).await;
    push_to(&it.messages, "mail", "b", &["5"]).await;
    let leased = pop_as(&it.messages, "billing", 2).await.unwrap();
    settle(&it.messages, Settlement::complete_through(&leased.partitions[0], 1)).await;

    let groups = it.messages.groups(Some(&queue("mail")), None).await.unwrap();
    let billing = &groups[0];
    assert_eq!((groups.len(), billing.name.as_str(), billing.queue.as_str()), (1, "billing", "mail"));
    assert_eq!((billing.partitions, billing.partitions_behind, billing.lag, billing.leases), (2, 2, 4, 1));
    assert!(billing.lag_time >= Duration::from_secs(600) && billing.lag_time < Duration::from_secs(660));
    assert_eq!((billing.began, billing.state), (Began::All, GroupState::Working));
    let available = it.messages.available(&queue("mail"), &group("billing")).await.unwrap();
    assert_eq!((available.waiting, available.leased), (4, 1));

    it.expire().await;
    assert_eq!(it.messages.groups(None, Some(&group("billing"))).await.unwrap()[0].state, GroupState::Waiting);
    let behind = it.messages.group_partitions(None, None, Duration::from_secs(60), 10).await.unwrap();
    let lags: Vec<(&str, i64)> = behind.iter().map(|place| (place.partition.as_str(), place.lag)).collect();
    assert_eq!(lags, [("a", 2), ("b", 2)]);
    assert!(it.messages.group_partitions(None, None, Duration::from_secs(3600), 10).await.unwrap().is_empty());
    while let Some(batch) = pop_as(&it.messages, "billing", 9).await {
        complete(&it.messages, &batch).await;
    }
    let idle = &it.messages.groups(None, None).await.unwrap()[0];
    assert_eq!((idle.lag, idle.lag_time, idle.state), (0, Duration::ZERO, GroupState::Idle));
}

#[tokio::test]
async fn a_group_that_never_popped_would_get_everything_and_a_queue_that_is_not_there_has_nothing() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["1", "2"]).await;

    let stranger = it.messages.available(&queue("mail"), &group("stranger")).await.unwrap();
    let nothing = it.messages.available(&queue("fax"), &group("stranger")).await.unwrap();

    assert_eq!((stranger.waiting, stranger.leased), (2, 0));
    assert_eq!(nothing, Available::default());
}

#[tokio::test]
async fn a_forgotten_group_is_new_when_it_comes_again() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["1", "2"]).await;
    let batch = pop_as(&it.messages, "billing", 1).await.unwrap();

    let deleted =
        it.messages.delete_group(Some(&queue("mail")), &group("billing"), Subscriptions::Forget).await.unwrap();

    assert_eq!((deleted.queues, deleted.partitions), (1, 1));
    assert_eq!(it.count("reveille.cursor").await + it.count("reveille.consumer_group").await, 0);
    assert_eq!(settle(&it.messages, Settlement::complete(&batch.partitions[0])).await, Settled::LeaseLost);
    let again = Pop::queue(queue("mail")).group(group("billing")).subscription(Subscription::New);
    assert!(pop(&it.messages, again).await.is_none(), "its new subscription counts");
    push_to(&it.messages, "mail", "a", &["3"]).await;
    assert_eq!(texts(&pop_as(&it.messages, "billing", 9).await.unwrap()), ["3"]);
    let nobody = it.messages.delete_group(None, &group("nobody"), Subscriptions::Forget).await.unwrap();
    assert_eq!(nobody, DeletedGroup::default());
}

#[tokio::test]
async fn a_deleted_group_whose_subscription_is_kept_begins_where_it_began() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["old"]).await;
    it.age(60).await;
    let since = Pop::queue(queue("mail")).group(group("late")).subscription(Subscription::New);
    assert!(pop(&it.messages, since).await.is_none());
    push_to(&it.messages, "mail", "a", &["1", "2"]).await;
    for name in ["late", "early"] {
        complete(&it.messages, &pop_as(&it.messages, name, 9).await.unwrap()).await;
    }

    for (name, again) in [("late", vec!["1", "2"]), ("early", vec!["old", "1", "2"])] {
        let deleted = it.messages.delete_group(None, &group(name), Subscriptions::Keep).await.unwrap();
        assert_eq!((deleted.queues, deleted.partitions), (1, 1));
        assert_eq!(texts(&pop_as(&it.messages, name, 9).await.unwrap()), again, "{name}");
    }
    assert_eq!(stranded(&it.client().await).await, 0);
}

#[tokio::test]
async fn a_changed_subscription_counts_when_the_group_begins_again() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["old"]).await;
    it.age(3600).await;
    push_to(&it.messages, "mail", "a", &["young"]).await;
    complete(&it.messages, &pop_as(&it.messages, "billing", 9).await.unwrap()).await;
    let from = it.now().await - Duration::from_secs(600);

    assert_eq!(it.messages.change_subscription(&group("billing"), from).await.unwrap(), 1);
    assert!(pop_as(&it.messages, "billing", 9).await.is_none());
    it.messages.delete_group(None, &group("billing"), Subscriptions::Keep).await.unwrap();

    assert_eq!(texts(&pop_as(&it.messages, "billing", 9).await.unwrap()), ["young"]);
    assert!(matches!(it.messages.groups(None, None).await.unwrap()[0].began, Began::From(_)));
}

#[tokio::test]
async fn a_group_is_deleted_from_one_queue_or_from_all() {
    let it = Fixture::new().await;
    for name in ["mail", "fax"] {
        push_to(&it.messages, name, "a", &["1"]).await;
        pop(&it.messages, Pop::queue(queue(name)).group(group("billing"))).await.unwrap();
    }

    let one = it.messages.delete_group(Some(&queue("fax")), &group("billing"), Subscriptions::Forget).await.unwrap();
    let rest = it.messages.delete_group(None, &group("billing"), Subscriptions::Forget).await.unwrap();

    assert_eq!((one.queues, rest.queues, it.count("reveille.consumer_group").await), (1, 1, 0));
}

#[tokio::test]
async fn deleting_a_group_wakes_its_waiting_pops_and_they_begin_again() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["1"]).await;
    complete(&it.messages, &pop_as(&it.messages, "billing", 1).await.unwrap()).await;
    let node = Node::on(&it.db).await.proven().await;
    let waiting = node.parked(Pop::queue(queue("mail")).group(group("billing"))).await;

    it.messages.delete_group(None, &group("billing"), Subscriptions::Forget).await.unwrap();

    assert_eq!(texts(&soon(waiting).await.unwrap().unwrap()), ["1"]);
    none(&it.messages, "nothing").await;
    assert_eq!(texts(&pop_queue(&it.messages, "mail", 1).await), ["1"]);
}

#[tokio::test]
async fn a_group_that_was_deleted_elsewhere_begins_with_its_pop_of_a_partition_that_is_not_there() {
    let fixture = Fixture::new().await;
    let (here, elsewhere) = (&fixture.messages, fixture.node().await);
    let wanted = || Pop::partition(queue("mail"), partition("b")).group(group("g")).subscription(Subscription::New);
    push_to(here, "mail", "a", &["before"]).await;
    assert!(pop(here, Pop::queue(queue("mail")).group(group("g")).subscription(Subscription::New)).await.is_none());
    soon(elsewhere.delete_group(Some(&queue("mail")), &group("g"), Subscriptions::Forget)).await.unwrap();
    assert!(pop(here, wanted()).await.is_none(), "the partition is not there yet");

    push_to(&elsewhere, "mail", "b", &["after"]).await;

    assert_eq!(texts(&pop(here, wanted()).await.expect("a message")), ["after"]);
}
