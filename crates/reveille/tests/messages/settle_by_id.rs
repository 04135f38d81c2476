//! Acks by transaction id: the rules a cursor can keep, whatever one call reports.

use reveille::messages::{Acknowledgement, Batch, LeaseId, Messages, Outcome, PartitionUid, Pop, Settled};
use reveille::uuid::Uuid;

use crate::pop_kit::{group, none, pop, pop_queue, push_to, texts};
use crate::settle_kit::{DEAD, KEPT, RELEASED};
use crate::support::{Fixture, item, queue, soon};

/// Push messages whose transaction ids are their payloads.
async fn push_named(messages: &Messages, names: &[&str]) {
    let items = names.iter().map(|name| item("mail", "a", name).transaction_id(*name)).collect();
    for pushed in soon(messages.push(items)).await {
        pushed.expect("is stored");
    }
}

async fn acknowledge(messages: &Messages, said: Vec<Acknowledgement>) -> Vec<Settled> {
    soon(messages.acknowledge(said)).await.into_iter().map(|settled| settled.expect("is judged")).collect()
}

/// The acknowledgements of a consumer of the batch, message by message.
fn say(batch: &Batch, said: &[(&str, Outcome)]) -> Vec<Acknowledgement> {
    let (uid, lease) = (batch.partitions[0].partition_uid, batch.lease.unwrap());
    said.iter()
        .map(|(name, outcome)| Acknowledgement::new(uid, *name).lease(lease).outcome(*outcome).error("no"))
        .collect()
}

const C: Outcome = Outcome::Completed;
const F: Outcome = Outcome::Failed;
const R: Outcome = Outcome::Retry;
const D: Outcome = Outcome::Dead;

#[tokio::test]
async fn completing_a_message_completes_what_came_before_it() {
    let it = Fixture::new().await;
    push_named(&it.messages, &["1", "2", "3", "4"]).await;
    let batch = pop_queue(&it.messages, "mail", 4).await;

    assert_eq!(acknowledge(&it.messages, say(&batch, &[("3", C)])).await, [KEPT]);
    assert_eq!(it.cursor().await.committed, 3);
    assert_eq!(acknowledge(&it.messages, say(&batch, &[("4", C), ("1", C)])).await, [RELEASED, Settled::Already]);
}

#[tokio::test]
async fn a_failed_batch_of_a_hundred_is_charged_once_each_time() {
    let it = Fixture::new().await;
    let names: Vec<String> = (0..100).map(|n| n.to_string()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    push_named(&it.messages, &names).await;
    it.set("mail", "retry_limit = 3").await;

    for failures in 1..=3 {
        let batch = pop_queue(&it.messages, "mail", 100).await;
        assert_eq!(batch.len(), 100);
        let all: Vec<_> = names.iter().map(|name| (*name, F)).collect();
        assert!(acknowledge(&it.messages, say(&batch, &all)).await.iter().all(|settled| *settled == RELEASED));
        assert_eq!((it.cursor().await.failures, it.cursor().await.committed), (failures, 0));
    }
    let batch = pop_queue(&it.messages, "mail", 100).await;
    let all: Vec<_> = names.iter().map(|name| (*name, C)).collect();

    assert!(acknowledge(&it.messages, say(&batch, &all)).await.iter().all(|settled| *settled == RELEASED));
    assert_eq!((it.cursor().await.committed, it.count("reveille.dead_letter").await), (100, 0));
}

#[tokio::test]
async fn beyond_its_budget_only_the_first_of_a_failed_batch_dies() {
    let it = Fixture::new().await;
    push_named(&it.messages, &["1", "2", "3"]).await;
    it.set("mail", "retry_limit = 0").await;
    let batch = pop_queue(&it.messages, "mail", 3).await;

    let answers = acknowledge(&it.messages, say(&batch, &[("1", F), ("2", F), ("3", F)])).await;

    assert_eq!(answers, [DEAD, RELEASED, RELEASED]);
    assert_eq!(texts(&pop_queue(&it.messages, "mail", 3).await), ["2", "3"]);
    assert_eq!(it.count("reveille.dead_letter").await, 1);
}

#[tokio::test]
async fn a_completed_message_does_not_carry_an_earlier_failed_one_with_it() {
    let it = Fixture::new().await;
    push_named(&it.messages, &["1", "2", "3", "4"]).await;
    let batch = pop_queue(&it.messages, "mail", 4).await;

    let answers = acknowledge(&it.messages, say(&batch, &[("4", C), ("2", F), ("1", C), ("3", D)])).await;

    assert_eq!(answers, [Settled::Redelivered, RELEASED, RELEASED, Settled::Redelivered]);
    assert_eq!(texts(&pop_queue(&it.messages, "mail", 4).await), ["2", "3", "4"]);
    assert_eq!(it.count("reveille.dead_letter").await, 0);
}

#[tokio::test]
async fn of_several_words_about_one_message_the_worst_counts() {
    for (words, dead, failures) in [([R, F, D], 1, 0), ([F, R, C], 0, 1), ([R, C, R], 0, 0)] {
        let it = Fixture::new().await;
        push_named(&it.messages, &["1"]).await;
        let batch = pop_queue(&it.messages, "mail", 1).await;
        let said: Vec<_> = words.iter().map(|word| ("1", *word)).collect();

        acknowledge(&it.messages, say(&batch, &said)).await;

        assert_eq!((it.count("reveille.dead_letter").await, it.cursor().await.failures), (dead, failures), "{words:?}");
    }
}

#[tokio::test]
async fn a_late_nack_is_refused_and_keeps_nothing_else_from_being_settled() {
    let it = Fixture::new().await;
    push_named(&it.messages, &["1", "2", "3", "4"]).await;
    let batch = pop_queue(&it.messages, "mail", 4).await;
    acknowledge(&it.messages, say(&batch, &[("2", C)])).await;

    let answers = acknowledge(&it.messages, say(&batch, &[("1", F), ("2", R), ("3", C), ("4", F)])).await;

    assert_eq!(answers, [Settled::Passed, Settled::Passed, RELEASED, RELEASED]);
    assert_eq!((it.cursor().await.committed, it.cursor().await.failures), (3, 1));
}

#[tokio::test]
async fn remembered_leases_are_judged_as_those_that_are_looked_up() {
    for remembered in [false, true] {
        let it = Fixture::new().await;
        push_named(&it.messages, &["1", "2", "3", "4", "5"]).await;
        let batch = pop_queue(&it.messages, "mail", 4).await;
        if remembered {
            it.messages.remember(&batch);
        }

        let first = acknowledge(&it.messages, say(&batch, &[("1", C), ("5", C), ("nobody", C)])).await;
        let second = acknowledge(&it.messages, say(&batch, &[("1", F), ("4", C)])).await;
        let third = acknowledge(&it.messages, say(&batch, &[("4", C)])).await;

        assert_eq!(first, [KEPT, Settled::NotFound, Settled::NotFound], "{remembered}");
        assert_eq!((second, third), (vec![Settled::Passed, RELEASED], vec![Settled::Already]), "{remembered}");
    }
}

#[tokio::test]
async fn an_ack_without_a_lease_is_judged_against_the_groups_own_and_counted() {
    let it = Fixture::new().await;
    push_named(&it.messages, &["1", "2"]).await;
    let batch = pop_queue(&it.messages, "mail", 1).await;
    let uid = batch.partitions[0].partition_uid;
    it.expire().await;

    let unleased = acknowledge(&it.messages, vec![Acknowledgement::new(uid, "2").strict()]).await;
    let answers = acknowledge(&it.messages, vec![Acknowledgement::new(uid, "1").strict()]).await;

    assert_eq!((unleased, answers), (vec![Settled::NotFound], vec![RELEASED]));
    assert_eq!(it.messages.unfenced_acknowledgements(), 1);
}

#[tokio::test]
async fn a_queue_may_want_a_lease_with_every_ack() {
    let it = Fixture::new().await;
    push_named(&it.messages, &["1"]).await;
    it.set("mail", "require_lease = true").await;
    let batch = pop_queue(&it.messages, "mail", 1).await;
    let uid = batch.partitions[0].partition_uid;

    assert_eq!(acknowledge(&it.messages, vec![Acknowledgement::new(uid, "1")]).await, [Settled::LeaseRequired]);
    assert_eq!(acknowledge(&it.messages, say(&batch, &[("1", C)])).await, [RELEASED]);
}

#[tokio::test]
async fn an_old_clients_late_ack_never_moves_the_group_back() {
    let it = Fixture::new().await;
    push_named(&it.messages, &["1", "2", "3"]).await;
    let batch = pop_queue(&it.messages, "mail", 3).await;
    let uid = batch.partitions[0].partition_uid;
    acknowledge(&it.messages, say(&batch, &[("3", C)])).await;

    let late = acknowledge(&it.messages, vec![Acknowledgement::new(uid, "1")]).await;
    let late_failure = acknowledge(&it.messages, vec![Acknowledgement::new(uid, "2").outcome(F)]).await;

    assert_eq!((late, late_failure), (vec![Settled::Already], vec![Settled::Passed]));
    assert_eq!(it.cursor().await.committed, 3);
}

#[tokio::test]
async fn a_stale_lease_an_ended_one_and_another_groups_are_refused() {
    let it = Fixture::new().await;
    push_named(&it.messages, &["1"]).await;
    let zombie = pop_queue(&it.messages, "mail", 1).await;
    it.messages.remember(&zombie);
    let uid = zombie.partitions[0].partition_uid;
    let other = pop(&it.messages, Pop::queue(queue("mail")).group(group("audit"))).await.unwrap();
    it.expire().await;

    let strict = say(&zombie, &[("1", C)]).into_iter().map(Acknowledgement::strict).collect();
    assert_eq!(acknowledge(&it.messages, strict).await, [Settled::Expired]);
    let foreign = Acknowledgement::new(uid, "1").lease(other.lease.unwrap());
    assert_eq!(acknowledge(&it.messages, vec![foreign]).await, [Settled::LeaseLost]);
    pop_queue(&it.messages, "mail", 1).await;
    assert_eq!(acknowledge(&it.messages, say(&zombie, &[("1", C)])).await, [Settled::LeaseLost]);

    assert_eq!(it.count("reveille.cursor where committed > 0").await, 0);
}

#[tokio::test]
async fn what_nobody_knows_is_not_found() {
    let it = Fixture::new().await;
    push_named(&it.messages, &["1"]).await;
    let batch = pop_queue(&it.messages, "mail", 1).await;
    let uid = batch.partitions[0].partition_uid;
    let nobody = PartitionUid(Uuid::from_u128(7));
    let lease = batch.lease.unwrap();

    let answers = acknowledge(
        &it.messages,
        vec![
            Acknowledgement::new(nobody, "1").lease(lease),
            Acknowledgement::new(uid, "1\0").lease(lease),
            Acknowledgement::new(uid, "1").group(group("strangers")).lease(lease),
            Acknowledgement::new(uid, "1").lease(LeaseId(Uuid::from_u128(7))),
            Acknowledgement::new(uid, "1").lease(lease),
        ],
    )
    .await;

    let (missing, lost) = (Settled::NotFound, Settled::LeaseLost);
    assert_eq!(answers, [missing, missing, missing, lost, RELEASED]);
}

#[tokio::test]
async fn one_call_may_speak_of_many_partitions() {
    let it = Fixture::new().await;
    for partition in ["a", "b", "c"] {
        push_to(&it.messages, "mail", partition, &["1", "2"]).await;
    }
    let batch = pop(&it.messages, Pop::queue(queue("mail")).batch(6).partitions(3)).await.unwrap();
    let lease = batch.lease.unwrap();
    let said = |at: usize, message: usize, outcome| {
        let partition = &batch.partitions[at];
        let id = partition.messages[message].transaction_id.clone();
        Acknowledgement::new(partition.partition_uid, id).lease(lease).outcome(outcome)
    };

    let answers = acknowledge(&it.messages, vec![said(0, 1, C), said(1, 0, F), said(1, 1, C), said(2, 0, C)]).await;

    assert_eq!(answers, [RELEASED, RELEASED, Settled::Redelivered, KEPT]);
    none(&it.messages, "nothing").await;
}
