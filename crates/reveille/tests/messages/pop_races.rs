//! Races between pushes, acks, registrations and `mark_ready`, each forced by a lock that the test
//! holds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use reveille::database::SchemaName;
use reveille::messages::{Messages, Pop, PushItem, Settlement};
use tokio::task::JoinSet;
use tokio_postgres::Client;

use crate::pop_kit::{WAIT, group, number, pop, pop_queue, push_to, spawn, stranded, texts};
use crate::settle_kit::deadlocks_after;
use crate::support::{Fixture, partition, push, queue, soon, until_blocked};

const ACK: &str = "messages/settle/complete.sql";
/// Acks leases that the other statement left out because their cursor was changed meanwhile.
const REST: &str =
    "select said from reveille.settle(array[$1::int], array[$2::int], array[$3::uuid], array[$4::bigint],
     array['completed'], array[null::text], array[false])";

/// The statement's text, as a simple query: `settle(1, 1, nonce, 1)`.
fn ack_text(change: impl Fn(String) -> String) -> String {
    let statement = reveille::database::statements().find(|statement| statement.name == ACK).expect("is there");
    change(statement.text(&SchemaName::default()))
}

/// Acks as the batcher does.
async fn ack(client: &Client, text: &str) {
    let lease = client.query_one(
        "select partition, grp, nonce, leased_through from reveille.cursor where lease_until is not null",
        &[],
    );
    let lease = lease.await.unwrap();
    let (partition, grp): (i32, i32) = (lease.get(0), lease.get(1));
    let (nonce, through): (uuid::Uuid, i64) = (lease.get(2), lease.get(3));
    let params: [&(dyn tokio_postgres::types::ToSql + Sync); 5] =
        [&vec![partition], &vec![grp], &vec![nonce], &vec![through], &vec![false]];
    if client.query(text, &params).await.unwrap().is_empty() {
        let said: String = client.query_one(REST, &[&partition, &grp, &nonce, &through]).await.unwrap().get(0);
        assert_eq!(said, "settled");
    }
}

/// The last ack has read the partition row; then a message is pushed, and the cursor that the ack
/// is about to write is marked ready.
async fn ack_that_began_before_a_push(text: String) -> (Fixture, i64) {
    let it = Fixture::new().await;
    push(&it.messages, "mail", "1").await;
    pop_queue(&it.messages, "mail", 1).await;
    let (mut holder, acker, watcher) = (it.client().await, it.client().await, it.client().await);
    let held = holder.transaction().await.unwrap();
    held.execute("select from reveille.cursor for update", &[]).await.unwrap();

    let acking = spawn(async move { ack(&acker, &text).await });
    until_blocked(&watcher, 1).await;
    push(&it.messages, "mail", "2").await;
    held.execute("select reveille.mark_ready(array(select id from reveille.queue))", &[]).await.unwrap();
    assert_eq!(
        held.query_one("select count(new_since) from reveille.partition_row", &[]).await.unwrap().get::<_, i64>(0),
        0
    );
    held.commit().await.unwrap();
    soon(acking).await.unwrap();

    let left = stranded(&watcher).await;
    (it, left)
}

#[tokio::test]
async fn the_last_ack_does_not_strand_what_was_pushed_and_marked_ready_while_it_waited() {
    let (it, left) = ack_that_began_before_a_push(ack_text(|text| text)).await;

    assert_eq!(left, 0);
    assert_eq!(texts(&pop_queue(&it.messages, "mail", 9).await), ["2"]);
}

/// Without rule R3: the cursor is found by its key, so that a version which the statement cannot
/// see is written too, and its own upto is not read.
#[tokio::test]
async fn without_the_cursors_own_upto_the_last_ack_would_strand_a_message() {
    let by_key = |of: &str| format!("cursor.partition = {of}.partition and cursor.grp = {of}.grp");
    let blind = ack_text(|text| {
        let changes = [
            (
                "greatest(cursor.upto, partition_row.next_seq - 1) > held.through",
                "partition_row.next_seq - 1 > held.through".to_owned(),
            ),
            ("cursor.ctid = seen.tid", by_key("acked")),
            ("cursor.ctid = held.tid", by_key("held")),
        ];
        changes.iter().fold(text, |text, (from, to)| {
            assert!(text.contains(from), "{from} is not in {text}");
            text.replace(from, to)
        })
    });

    let (_it, left) = ack_that_began_before_a_push(blind).await;

    assert_eq!(left, 1);
}

/// `mark_ready` has read the partition rows; then a message is pushed to one of them. The ack of
/// all messages before, which began earlier still, sees neither the push nor a mark at its cursor.
async fn mark_ready_that_began_before_a_push(function: &str) -> (Fixture, i64) {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["a1"]).await;
    push_to(&it.messages, "mail", "b", &["b1"]).await;
    let client = it.client().await;
    make_careless(&client).await;
    let first = pop(&it.messages, Pop::partition(queue("mail"), partition("a"))).await.unwrap();
    assert_eq!(texts(&first), ["a1"]);
    // As a claim by name leaves it: the partition row has new_since though the cursor is up to
    // date; and b's cursor was not marked ready.
    client
        .batch_execute(
            "update reveille.partition_row set new_since = clock_timestamp();
             update reveille.cursor set upto = 0, due_at = null where lease_until is null",
        )
        .await
        .unwrap();
    let (mut ack_holder, mut marking_holder) = (it.client().await, it.client().await);
    let (acker, marker) = (it.client().await, it.client().await);
    let hold_ack = ack_holder.transaction().await.unwrap();
    hold_ack.execute("select from reveille.cursor where lease_until is not null for update", &[]).await.unwrap();
    let hold_marking = marking_holder.transaction().await.unwrap();
    hold_marking.execute("select from reveille.cursor where lease_until is null for update", &[]).await.unwrap();

    let acking = spawn(async move { ack(&acker, &ack_text(|text| text)).await });
    until_blocked(&client, 1).await;
    let call = format!("select {function}(array(select id from reveille.queue))");
    let marking = spawn(async move { marker.execute(&call, &[]).await.unwrap() });
    until_blocked(&client, 2).await;
    push_to(&it.messages, "mail", "a", &["a2"]).await;
    hold_marking.commit().await.unwrap();
    soon(marking).await.unwrap();
    hold_ack.commit().await.unwrap();
    soon(acking).await.unwrap();

    let left = stranded(&client).await;
    (it, left)
}

#[tokio::test]
async fn mark_ready_keeps_new_since_of_a_partition_that_is_pushed_to_meanwhile() {
    let (it, left) = mark_ready_that_began_before_a_push("reveille.mark_ready").await;

    assert_eq!(left, 0);
    let rest = pop(&it.messages, Pop::queue(queue("mail")).batch(9).partitions(9)).await.unwrap();
    let mut rest = texts(&rest);
    rest.sort_unstable();
    assert_eq!(rest, ["a2", "b1"]);
}

/// Without rule R2: `new_since` is cleared though the partition row has moved meanwhile.
#[tokio::test]
async fn without_a_second_check_of_the_partition_row_mark_ready_would_strand_a_message() {
    let (_it, left) = mark_ready_that_began_before_a_push("reveille.careless").await;

    assert_eq!(left, 1);
}

/// A `mark_ready` that does not check the partition row again.
async fn make_careless(client: &Client) {
    let text: String = client
        .query_one("select pg_get_functiondef('reveille.mark_ready(int[], timestamptz)'::regprocedure)", &[])
        .await
        .unwrap()
        .get(0);
    let check = "and partition_row.next_seq - 1 = new_partition.newest";
    assert!(text.contains(".mark_ready(") && text.contains(check), "{text}");
    let careless = text.replace(".mark_ready(", ".careless(").replace(check, "");
    client.batch_execute(&careless).await.unwrap();
}

#[tokio::test]
async fn a_partition_that_is_made_while_a_group_registers_is_seen_by_the_group() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["a1"]).await;
    let (mut registrar, watcher) = (it.client().await, it.client().await);
    let registering = registrar.transaction().await.unwrap();
    registering
        .execute("select reveille.register((select id from reveille.queue), 'g', 'new', null)", &[])
        .await
        .unwrap();

    let messages = it.messages.clone();
    let pushing = spawn(async move { push_to(&messages, "mail", "b", &["b1"]).await });
    until_blocked(&watcher, 1).await;
    registering.commit().await.unwrap();
    soon(pushing).await.unwrap();

    let batch = pop(&it.messages, Pop::queue(queue("mail")).group(group("g")).batch(9).partitions(9)).await.unwrap();
    assert_eq!(texts(&batch), ["b1"], "and what was there before is not new");
}

#[tokio::test]
async fn a_group_that_registers_while_a_partition_is_made_sees_the_partition() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["a1"]).await;
    let (mut maker, watcher) = (it.client().await, it.client().await);
    let making = maker.transaction().await.unwrap();
    making.execute("select reveille.ensure('mail', array['b'])", &[]).await.unwrap();

    let messages = it.messages.clone();
    let ask = || Pop::queue(queue("mail")).group(group("g")).batch(9).partitions(9);
    let popping = spawn(async move { messages.pop(ask()).await.unwrap() });
    until_blocked(&watcher, 1).await;
    making.commit().await.unwrap();
    let first = soon(popping).await.unwrap().unwrap();
    push_to(&it.messages, "mail", "b", &["b1"]).await;

    assert_eq!(texts(&first), ["a1"]);
    assert_eq!(texts(&pop(&it.messages, ask()).await.unwrap()), ["b1"]);
    let cursors = "select count(*) from reveille.cursor join reveille.consumer_group on id = grp where name = 'g'";
    assert_eq!(number(&watcher, cursors).await, 2);
}

/// A partition that is marked ready before a new group is visible is not marked ready for the new
/// group: the group catches up by itself.
#[tokio::test]
async fn what_is_pushed_and_marked_ready_while_a_group_registers_reaches_the_group() {
    let it = Fixture::new().await;
    push(&it.messages, "mail", "1").await;
    let other = || Pop::queue(queue("mail")).group(group("other")).batch(9);
    let first = pop(&it.messages, other()).await.unwrap();
    it.messages.complete(&first).await.pop().unwrap().unwrap();
    let mut registrar = it.client().await;
    let registering = registrar.transaction().await.unwrap();
    registering
        .execute("select reveille.register((select id from reveille.queue), 'g', 'new', null)", &[])
        .await
        .unwrap();

    push(&it.messages, "mail", "2").await;
    it.client().await.execute("select reveille.mark_ready(array(select id from reveille.queue))", &[]).await.unwrap();
    registering.commit().await.unwrap();

    let batch = pop(&it.messages, Pop::queue(queue("mail")).group(group("g")).batch(9)).await.unwrap();
    assert_eq!(texts(&batch), ["2"]);
}

/// A claim that finds the cursor locked reports the key contended, not empty: the waiting pop gets
/// the message when the lock is released.
#[tokio::test]
async fn a_partition_that_somebody_holds_for_a_moment_is_not_taken_for_empty() {
    let it = Fixture::new().await;
    push(&it.messages, "mail", "hello").await;
    pop(&it.messages, Pop::queue(queue("mail")).group(group("warm"))).await.unwrap();
    let mut holder = it.client().await;
    let held = holder.transaction().await.unwrap();
    held.execute("select reveille.mark_ready(array(select id from reveille.queue))", &[]).await.unwrap();
    let messages = it.messages.clone();
    let popping = spawn(async move { messages.pop(Pop::queue(queue("mail")).wait(WAIT)).await });
    // Registered, and its only cursor held.
    let seen = async {
        while it.count("reveille.consumer_group where name = '__QUEUE_MODE__' and settled").await == 0 {
            tokio::task::yield_now().await;
        }
    };
    soon(seen).await;
    held.execute("select from reveille.cursor for update", &[]).await.unwrap();

    held.commit().await.unwrap();

    assert_eq!(texts(&soon(popping).await.unwrap().unwrap().unwrap()), ["hello"]);
}

/// Everything at once: no deadlock, nothing stranded in any snapshot, every group gets every
/// message in its order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_stress_nothing_is_stranded_lost_or_deadlocked() {
    const PARTITIONS: usize = 6;
    const EACH: i64 = 60;
    let it = Fixture::new().await;
    let other = it.node().await;
    let nodes = [it.messages.clone(), other];
    it.client().await.execute("select reveille.ensure('mail', array['0'])", &[]).await.unwrap();
    it.set("mail", "retry_limit = 1000, max_deliveries = 1000").await;
    for name in ["g1", "g2"] {
        assert!(pop(&it.messages, Pop::queue(queue("mail")).group(group(name))).await.is_none());
    }
    let over = Arc::new(AtomicBool::new(false));
    let (watcher, watched) = (it.client().await, Arc::clone(&over));
    let watching = spawn(async move {
        let (mut checks, mut worst) = (0_u32, 0);
        while !watched.load(Ordering::Relaxed) {
            worst = worst.max(stranded(&watcher).await);
            checks += 1;
        }
        (checks, worst)
    });
    let mut pushing = JoinSet::new();
    for number in 0..PARTITIONS {
        let messages = nodes[number % 2].clone();
        pushing.spawn(async move {
            for seq in 0..EACH {
                let item = PushItem::new(queue("mail"), format!("{seq}")).partition(partition(&number.to_string()));
                messages.push_one(item).await.unwrap();
            }
        });
    }
    let mut consuming = JoinSet::new();
    for (number, name) in ["g1", "g1", "g2", "g2", "g1", "g2"].into_iter().enumerate() {
        let messages = nodes[number % 2].clone();
        consuming.spawn(async move { consume(&messages, name, number).await });
    }

    while let Some(done) = pushing.join_next().await {
        done.unwrap();
    }
    let mut seen: Vec<(String, String, i64)> = Vec::new();
    while let Some(done) = soon(consuming.join_next()).await {
        seen.extend(done.unwrap());
    }
    over.store(true, Ordering::Relaxed);
    let (checks, worst) = watching.await.unwrap();

    assert_eq!(worst, 0, "a partition was stranded, in one of {checks} checks");
    for name in ["g1", "g2"] {
        for number in 0..PARTITIONS {
            let mut seqs: Vec<i64> = seen
                .iter()
                .filter(|(group, partition, _)| group == name && *partition == number.to_string())
                .map(|(.., seq)| *seq)
                .collect();
            seqs.sort_unstable();
            assert_eq!(seqs, (1..=EACH).collect::<Vec<_>>(), "of partition {number}, {name} completed these");
        }
    }
    let client = it.client().await;
    assert_eq!(number(&client, "select count(*) from reveille.cursor where due_at is not null").await, 0);
    assert_eq!(deadlocks_after(&nodes.each_ref(), &client).await, 0);
}

/// Pops until nothing comes for a while; completes, pops again at once, releases and fails by
/// turns. Returns what it completed.
async fn consume(messages: &Messages, name: &str, number: usize) -> Vec<(String, String, i64)> {
    let ask = || Pop::queue(queue("mail")).group(group(name)).batch(7).partitions(2);
    let mut completed = Vec::new();
    let mut turn = number;
    let mut held = None;
    loop {
        let batch = match held.take() {
            Some(batch) => batch,
            None => match messages.pop(ask().wait(std::time::Duration::from_secs(3))).await.unwrap() {
                Some(batch) => batch,
                None => return completed,
            },
        };
        turn += 1;
        match turn % 5 {
            0 => {
                messages.release(batch.lease.unwrap()).await.unwrap();
            }
            1 => {
                let lease = &batch.partitions[0];
                let failed = Settlement::fail(lease, lease.messages[0].seq, "no");
                let rest = batch.partitions[1..].iter().map(Settlement::release);
                for settled in messages.settle(std::iter::once(failed).chain(rest).collect()).await {
                    assert!(settled.unwrap().holds());
                }
            }
            2 => {
                let settled = messages.complete(&batch).await;
                note(&mut completed, name, &batch, &settled);
                held = messages.pop(ask()).await.unwrap();
            }
            _ => {
                let settled = messages.complete(&batch).await;
                note(&mut completed, name, &batch, &settled);
            }
        }
    }
}

fn note(
    completed: &mut Vec<(String, String, i64)>,
    name: &str,
    batch: &reveille::messages::Batch,
    settled: &[Result<reveille::messages::Settled, reveille::messages::MessagesError>],
) {
    for (lease, settled) in batch.partitions.iter().zip(settled) {
        assert!(matches!(settled, Ok(settled) if settled.holds()), "{settled:?}");
        completed.extend(lease.messages.iter().map(|it| (name.to_owned(), lease.partition.to_string(), it.seq)));
    }
}
