//! Pushes and acks in one commit.

use reveille::messages::{
    Acknowledgement, Changes, MessagesError, Outcome, Pop, Settled, Settlement, TransactionOutcome,
};

use crate::pop_kit::{none, pop, pop_queue, push_to, texts};
use crate::settle_kit::{Aside, RELEASED, settle};
use crate::support::{Fixture, item, queue, soon};

async fn transact(it: &Fixture, changes: Changes) -> TransactionOutcome {
    soon(it.messages.transaction(changes)).await.expect("is decided")
}

#[tokio::test]
async fn what_is_consumed_and_what_is_produced_from_it_happen_together() {
    let it = Fixture::new().await;
    push_to(&it.messages, "orders", "a", &["order"]).await;
    let batch = pop_queue(&it.messages, "orders", 1).await;
    let bills = Changes::new()
        .push(item("bills", "a", "bill").transaction_id("bill-1"))
        .push(item("mail", "b", "letter"))
        .settle(Settlement::complete(&batch.partitions[0]));

    let TransactionOutcome::Committed { pushed, settled } = transact(&it, bills).await else { panic!("was refused") };

    assert_eq!((pushed.len(), settled), (2, vec![RELEASED]));
    assert_eq!(pushed[0].transaction_id(), "bill-1");
    none(&it.messages, "orders").await;
    assert_eq!(texts(&pop_queue(&it.messages, "bills", 1).await), ["bill"]);
    assert_eq!(texts(&pop_queue(&it.messages, "mail", 1).await), ["letter"]);
}

#[tokio::test]
async fn an_ack_that_does_not_hold_undoes_the_pushes() {
    let it = Fixture::new().await;
    push_to(&it.messages, "orders", "a", &["order", "next"]).await;
    let zombie = pop_queue(&it.messages, "orders", 1).await;
    it.expire().await;
    let heir = pop_queue(&it.messages, "orders", 1).await;
    let changes = |batch: &reveille::messages::Batch| {
        Changes::new().push(item("bills", "a", "bill")).settle(Settlement::complete(&batch.partitions[0]))
    };

    let refused = transact(&it, changes(&zombie)).await;
    assert_eq!(refused, TransactionOutcome::Refused { ack: 0, why: Settled::LeaseLost });
    assert_eq!(
        it.count(
            "reveille.segment s join reveille.partition p on p.id = s.partition
        join reveille.queue q on q.id = p.queue where q.name = 'bills'"
        )
        .await,
        0
    );

    assert!(matches!(transact(&it, changes(&heir)).await, TransactionOutcome::Committed { .. }));
    let repeat = transact(&it, changes(&heir)).await;
    assert_eq!(repeat, TransactionOutcome::Refused { ack: 0, why: Settled::Already }, "it would push twice");
    assert_eq!(it.texts("bills", "a").await, ["bill"]);
}

#[tokio::test]
async fn a_push_that_was_stored_before_undoes_the_acks() {
    let it = Fixture::new().await;
    push_to(&it.messages, "orders", "a", &["order"]).await;
    let first = it.messages.push_one(item("bills", "a", "bill").transaction_id("bill-1")).await.unwrap();
    let batch = pop_queue(&it.messages, "orders", 1).await;
    let changes = Changes::new()
        .push(item("bills", "a", "other"))
        .push(item("bills", "a", "bill").transaction_id("bill-1"))
        .settle(Settlement::complete(&batch.partitions[0]));

    let refused = transact(&it, changes).await;

    assert_eq!(refused, TransactionOutcome::Duplicate { push: 1, of: first.id });
    assert_eq!(it.texts("bills", "a").await, ["bill"]);
    assert_eq!(settle(&it.messages, Settlement::complete(&batch.partitions[0])).await, RELEASED, "it is still leased");
}

#[tokio::test]
async fn acks_by_transaction_id_take_part_and_one_that_is_unknown_undoes_all() {
    let it = Fixture::new().await;
    push_to(&it.messages, "orders", "a", &["1", "2", "3"]).await;
    let batch = pop_queue(&it.messages, "orders", 3).await;
    let (uid, lease) = (batch.partitions[0].partition_uid, batch.lease.unwrap());
    let named = |at: usize| batch.partitions[0].messages[at].transaction_id.clone();
    let ack = |id: String| Acknowledgement::new(uid, id).lease(lease);

    let unknown =
        Changes::new().acknowledge(ack(named(0))).acknowledge(ack("nobody".to_owned())).push(item("bills", "a", "x"));
    assert_eq!(transact(&it, unknown).await, TransactionOutcome::Refused { ack: 1, why: Settled::NotFound });
    let beside = Changes::new()
        .acknowledge(ack(named(0)).outcome(Outcome::Failed))
        .acknowledge(ack(named(1)))
        .push(item("bills", "a", "x"));
    assert_eq!(transact(&it, beside).await, TransactionOutcome::Refused { ack: 1, why: Settled::Redelivered });
    assert_eq!((it.cursor().await.committed, it.cursor().await.failures), (0, 0));
    assert!(it.texts("bills", "a").await.is_empty());

    let whole = Changes::new()
        .acknowledge(ack(named(1)))
        .acknowledge(ack(named(2)).outcome(Outcome::Failed))
        .push(item("bills", "a", "x"));
    let TransactionOutcome::Committed { settled, .. } = transact(&it, whole).await else { panic!("was refused") };
    assert_eq!(settled, [RELEASED, RELEASED]);
    assert_eq!(texts(&pop_queue(&it.messages, "orders", 3).await), ["3"]);
}

#[tokio::test]
async fn a_push_that_cannot_be_stored_undoes_the_acks() {
    let it = Fixture::new().await;
    push_to(&it.messages, "orders", "a", &["order"]).await;
    let batch = pop_queue(&it.messages, "orders", 1).await;
    let changes = Changes::new()
        .push(item("bills", "a", "bill").transaction_id("a\0b"))
        .settle(Settlement::complete(&batch.partitions[0]));

    let refused = soon(it.messages.transaction(changes)).await.unwrap_err();

    assert!(matches!(refused, MessagesError::Nul { .. }), "{refused:?}");
    assert_eq!(settle(&it.messages, Settlement::complete(&batch.partitions[0])).await, RELEASED);
}

#[tokio::test]
async fn what_a_transaction_frees_or_pushes_can_be_claimed_at_once() {
    let it = Fixture::new().await;
    push_to(&it.messages, "orders", "a", &["1", "2"]).await;
    let batch = pop_queue(&it.messages, "orders", 1).await;
    let messages = it.messages.clone();
    let waiting = Aside::begin(async move {
        messages.pop(Pop::queue(queue("bills")).wait(std::time::Duration::from_secs(20))).await.unwrap()
    });

    let changes = Changes::new().push(item("bills", "a", "bill")).settle(Settlement::complete(&batch.partitions[0]));
    transact(&it, changes).await;

    assert_eq!(texts(&waiting.done().await.unwrap()), ["bill"]);
    assert_eq!(texts(&pop(&it.messages, Pop::queue(queue("orders"))).await.unwrap()), ["2"]);
}

#[tokio::test]
async fn a_transaction_re_creates_a_queue_that_was_deleted_elsewhere() {
    let it = Fixture::new().await;
    push_to(&it.messages, "bills", "a", &["before"]).await;
    assert!(soon(it.node().await.delete_queue(&queue("bills"))).await.unwrap());

    let outcome = transact(&it, Changes::new().push(item("bills", "a", "anew"))).await;

    assert!(matches!(outcome, TransactionOutcome::Committed { .. }), "{outcome:?}");
    assert_eq!(it.texts("bills", "a").await, ["anew"]);
}

#[tokio::test]
async fn an_ack_that_comes_too_late_is_why_and_not_the_one_beside_it() {
    let it = Fixture::new().await;
    push_to(&it.messages, "orders", "a", &["1", "2"]).await;
    let batch = pop_queue(&it.messages, "orders", 2).await;
    let lease = &batch.partitions[0];
    settle(&it.messages, Settlement::complete_through(lease, lease.messages[0].seq)).await;
    let ack = |at: usize| {
        Acknowledgement::new(lease.partition_uid, lease.messages[at].transaction_id.clone()).lease(batch.lease.unwrap())
    };

    let refused = transact(&it, Changes::new().acknowledge(ack(1)).acknowledge(ack(0).outcome(Outcome::Failed))).await;

    assert_eq!(refused, TransactionOutcome::Refused { ack: 1, why: Settled::Passed });
}
