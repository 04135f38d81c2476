//! Acks whose answer is lost, and acks beside everything else that touches a cursor.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use reveille::messages::{
    Acknowledgement, Batch, Changes, DeadLetters, GroupName, Messages, MessagesError, MessagesOptions, Outcome,
    PartitionLease, Pop, SeekTo, Settled, Settlement, TransactionOutcome,
};
use reveille_testkit::{Direction, FaultProxy};
use reveille_wake::Cause;

use crate::pop_kit::{Node, group, pop, pop_queue, push_to, spawn, stranded, texts};
use crate::settle_kit::{RELEASED, complete, deadlocks_after, settle};
use crate::support::{Fixture, item, queue, soon, until_blocked};

/// A node behind a proxy that has acked before, and the first of two messages, leased.
async fn remote_and_batch(it: &Fixture) -> (FaultProxy, Messages, Batch) {
    push_to(&it.messages, "mail", "a", &["warm", "1", "2"]).await;
    let (proxy, url) = it.db.proxied().await;
    let remote = it.node_at(&url, MessagesOptions::default()).await;
    complete(&remote, &pop_queue(&remote, "mail", 1).await).await;
    let batch = pop_queue(&it.messages, "mail", 1).await;
    (proxy, remote, batch)
}

#[tokio::test]
async fn an_ack_whose_answer_was_lost_is_found_to_have_happened() {
    let it = Fixture::new().await;
    let (proxy, remote, batch) = remote_and_batch(&it).await;

    proxy.cut_after(Direction::ToClient, 0);
    let settled = settle(&remote, Settlement::complete(&batch.partitions[0])).await;

    assert_eq!(settled, Settled::Already);
    assert_eq!(it.cursor().await.committed, 2);
    assert_eq!(settle(&it.messages, Settlement::complete(&batch.partitions[0])).await, Settled::Already);
}

/// The second attempt finds that nothing is left to settle; the first woke nobody.
#[tokio::test]
async fn an_ack_whose_answer_was_lost_wakes_a_pop_that_waits_for_the_partition() {
    let it = Fixture::new().await;
    let (proxy, remote, batch) = remote_and_batch(&it).await;
    let here = Node::on(&it.db).await.proven().await;
    let waiting = here.parked(Pop::queue(queue("mail"))).await;

    proxy.cut_after(Direction::ToClient, 0);
    settle(&remote, Settlement::complete(&batch.partitions[0])).await;

    assert_eq!(texts(&soon(waiting).await.unwrap().unwrap()), ["2"]);
    assert_eq!(here.cause_of_last_find(), Some(Cause::Notified));
}

/// The first attempt counts and its answer is lost; before the second, another consumer claims the
/// next message. "Lease lost" would be wrong: it means that the work did not count.
#[tokio::test]
async fn an_ack_that_may_have_counted_is_not_answered_with_a_lost_lease() {
    let it = Fixture::new().await;
    let (proxy, remote, batch) = remote_and_batch(&it).await;
    let (mut holder, watcher) = (it.client().await, it.client().await);
    let held = holder.transaction().await.unwrap();
    held.execute("select from reveille.cursor for update", &[]).await.unwrap();
    let acked = Settlement::complete(&batch.partitions[0]);
    let settling = spawn(async move { remote.settle(vec![acked]).await.pop().unwrap() });
    until_blocked(&watcher, 1).await;

    // The server has the statement; its answer does not arrive until the next message is claimed.
    proxy.stall();
    proxy.cut();
    held.rollback().await.unwrap();
    let counted = async {
        while it.cursor().await.committed < 2 {
            tokio::task::yield_now().await;
        }
    };
    soon(counted).await;
    let next = pop_queue(&it.messages, "mail", 1).await;
    proxy.heal();
    let settled = soon(settling).await.unwrap();

    assert_eq!((it.cursor().await.committed, next.partitions[0].messages[0].seq), (2, 3), "it counted");
    assert!(matches!(settled, Err(MessagesError::Database(_))), "{settled:?}");
}

#[tokio::test]
async fn a_failure_whose_answer_was_lost_is_charged_once_and_buried_once() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["1"]).await;
    it.set("mail", "retry_limit = 1").await;
    let (proxy, url) = it.db.proxied().await;
    let remote = it.node_at(&url, MessagesOptions::default()).await;

    for (mark, failures, dead) in [("FIRST-MARK", 1, 0), ("SECOND-MARK", 0, 1)] {
        let batch = pop_queue(&it.messages, "mail", 1).await;
        proxy.cut_after_sending(mark);
        let settled = settle(&remote, Settlement::fail(&batch.partitions[0], 1, mark)).await;
        // The repeat may overtake the first, which then finds itself the repeat.
        assert!(settled.holds(), "{mark}: {settled:?}");
        assert_eq!((it.cursor().await.failures, it.count("reveille.dead_letter").await), (failures, dead), "{mark}");
    }
}

#[tokio::test]
async fn a_transaction_whose_commit_was_interrupted_is_resolved() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["1"]).await;
    let (proxy, url) = it.db.proxied().await;
    let remote = it.node_at(&url, MessagesOptions::default()).await;
    let batch = pop_queue(&it.messages, "mail", 1).await;
    let changes = Changes::new().push(item("bills", "a", "bill")).settle(Settlement::complete(&batch.partitions[0]));

    proxy.cut_after_sending("commit\0");
    let outcome = soon(remote.transaction(changes)).await.unwrap();

    assert!(matches!(outcome, TransactionOutcome::Committed { .. }), "{outcome:?}");
    assert_eq!((it.cursor().await.committed, it.texts("bills", "a").await.len()), (1, 1));
}

#[tokio::test]
async fn when_postgresql_is_away_an_ack_says_so_and_can_be_repeated() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["1"]).await;
    let (proxy, url) = it.db.proxied().await;
    let remote = it.node_at(&url, MessagesOptions::default()).await;
    let batch = pop_queue(&it.messages, "mail", 1).await;

    proxy.refuse();
    let refused = soon(remote.settle(vec![Settlement::complete(&batch.partitions[0])])).await.pop().unwrap();
    assert!(refused.is_err());
    proxy.heal();

    assert_eq!(settle(&remote, Settlement::complete(&batch.partitions[0])).await, RELEASED);
}

fn judged(answers: Vec<Result<Settled, MessagesError>>) {
    for answer in answers {
        answer.expect("is judged");
    }
}

/// One consumer: settles its messages in every way there is, and counts its leases.
async fn consume(messages: Messages, by: GroupName, stop: Arc<AtomicBool>, leases: Arc<AtomicU64>) {
    let mut rounds = 0;
    while !stop.load(Ordering::Relaxed) {
        let Some(batch) =
            messages.pop(Pop::queue(queue("mail")).group(by.clone()).batch(20).partitions(5)).await.unwrap()
        else {
            tokio::task::yield_now().await;
            continue;
        };
        rounds += 1;
        leases.fetch_add(1, Ordering::Relaxed);
        let lease = batch.lease.unwrap();
        messages.renew(lease, None).await.unwrap();
        match rounds % 4 {
            0 => {
                messages.release(lease).await.unwrap();
            }
            1 => {
                let again = |part: &PartitionLease| Settlement::retry(part, part.messages[0].seq);
                judged(messages.settle(batch.partitions.iter().map(again).collect()).await);
            }
            2 => {
                let ack = |part: &PartitionLease| {
                    let last = part.messages.last().unwrap();
                    Acknowledgement::new(part.partition_uid, last.transaction_id.clone())
                        .group(by.clone())
                        .lease(lease)
                        .outcome(if last.seq % 7 == 0 { Outcome::Dead } else { Outcome::Completed })
                };
                judged(messages.acknowledge(batch.partitions.iter().map(ack).collect()).await);
            }
            _ => judged(messages.complete(&batch).await),
        }
    }
}

/// From the beginning, every partition in its order.
async fn reads_everything_in_order(it: &Fixture, by: &GroupName) {
    soon(it.messages.seek(&queue("mail"), by, None, SeekTo::Beginning)).await.unwrap();
    let mut last: HashMap<String, i64> = HashMap::new();
    let mut count = 0;
    while let Some(batch) =
        pop(&it.messages, Pop::queue(queue("mail")).group(by.clone()).batch(1000).partitions(50)).await
    {
        for part in &batch.partitions {
            for message in &part.messages {
                let before = last.insert(part.partition.to_string(), message.seq).unwrap_or(0);
                assert!(message.seq > before, "order was lost in {}", part.partition);
                count += 1;
            }
        }
        complete(&it.messages, &batch).await;
    }
    assert!(count >= 40 * 40, "{by}: only {count}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn consumers_seeks_redrives_and_upkeep_never_deadlock_and_strand_nothing() {
    let it = Fixture::new().await;
    let other = it.node().await;
    let (stop, leases) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let groups = [group("one"), group("two")];
    let mut tasks = tokio::task::JoinSet::new();
    for by in &groups {
        for messages in [&it.messages, &other] {
            for _ in 0..2 {
                tasks.spawn(consume(messages.clone(), by.clone(), Arc::clone(&stop), Arc::clone(&leases)));
            }
        }
    }
    let client = it.client().await;

    // At least so many rounds, and on a slow machine until the consumers had enough leases.
    let mut rounds = 0..;
    while let Some(round) = rounds.next().filter(|round| *round < 40 || leases.load(Ordering::Relaxed) < 200) {
        let items = (0..40).map(|n| item("mail", &(n % 8).to_string(), &format!("{round}/{n}"))).collect();
        for pushed in soon(other.push(items)).await {
            pushed.unwrap();
        }
        match round % 4 {
            0 => {
                let _ = soon(it.messages.seek(&queue("mail"), &groups[0], None, SeekTo::After(3))).await;
            }
            1 => {
                soon(other.redrive_all(&DeadLetters::all())).await.unwrap();
            }
            2 => assert_eq!(soon(it.messages.upkeep()).await.unwrap().repairs, 0, "round {round}"),
            _ => assert_eq!(stranded(&client).await, 0, "round {round}"),
        }
    }
    stop.store(true, Ordering::Relaxed);
    while let Some(done) = soon(tasks.join_next()).await {
        done.unwrap();
    }

    it.expire().await;
    for by in &groups {
        reads_everything_in_order(&it, by).await;
    }
    assert_eq!(deadlocks_after(&[&other, &it.messages], &client).await, 0);
}
