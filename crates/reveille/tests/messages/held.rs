//! While a transaction elsewhere is held open, no version of a row goes away; rows are found
//! nevertheless, and changed once.

use reveille::messages::{Pop, Settled};
use tokio_postgres::Client;
use uuid::Uuid;

use crate::pop_kit::{Node, none, number, pop_queue, push_to, spawn, stranded, texts};
use crate::support::{Fixture, item, push, queue, seq, soon, until_blocked};

/// So many dead entries before everything that is due that to read past them takes long on any
/// machine.
const MAKE_DEAD: [&str; 2] = [
    "insert into reveille.cursor (partition, grp, due_at)
     select 1000000 + n, grp, clock_timestamp() - interval '1 hour' from reveille.cursor, generate_series(1, 100000) as n",
    "delete from reveille.cursor where partition > 1000000",
];

async fn hold_snapshot(client: &Client) {
    client.batch_execute("begin isolation level repeatable read; select 1").await.unwrap();
}

/// The index of cursors is not unique: the table `cursor_made` keeps them single.
#[tokio::test]
async fn of_two_calls_that_mark_a_partition_ready_at_once_one_creates_the_cursor() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["a1"]).await;
    none(&it.messages, "other").await;
    pop_queue(&it.messages, "mail", 1).await;
    push_to(&it.messages, "mail", "b", &["b1"]).await;
    let (mut first, second, watcher) = (it.client().await, it.client().await, it.client().await);
    let mark_ready = "select reveille.mark_ready(array(select id from reveille.queue))";

    let making = first.transaction().await.unwrap();
    making.execute(mark_ready, &[]).await.unwrap();
    let waiting = spawn(async move { second.execute(mark_ready, &[]).await.unwrap() });
    until_blocked(&watcher, 1).await;
    making.commit().await.unwrap();
    soon(waiting).await.unwrap();

    assert_eq!(number(&watcher, "select count(*) from reveille.cursor").await, 2);
    assert_eq!(number(&watcher, "select count(*) from reveille.cursor_made").await, 2);
    assert_eq!(stranded(&watcher).await, 0);
}

/// Also by a statement that does not read that table.
#[tokio::test]
async fn a_cursor_is_created_once() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["a1"]).await;
    let (mut first, second, watcher) = (it.client().await, it.client().await, it.client().await);
    let make = "insert into reveille.cursor (partition, grp) values (7, 9), (8, 9) on conflict do nothing";

    let making = first.transaction().await.unwrap();
    assert_eq!(making.execute(make, &[]).await.unwrap(), 2);
    let waiting = spawn(async move { second.execute(make, &[]).await.unwrap() });
    until_blocked(&watcher, 1).await;
    making.commit().await.unwrap();

    assert_eq!(soon(waiting).await.unwrap(), 0);
    assert_eq!(number(&watcher, "select count(*) from reveille.cursor where grp = 9").await, 2);
    watcher.execute("delete from reveille.cursor where partition = 8", &[]).await.unwrap();
    assert_eq!(watcher.execute(make, &[]).await.unwrap(), 1);
    assert_eq!(number(&watcher, "select count(*) from reveille.cursor_made where grp = 9").await, 2);
}

/// The cursor of the group before it lies next to the one that is gone.
#[tokio::test]
async fn a_lease_whose_cursor_is_deleted_meanwhile_is_lost_and_not_another_groups() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["a1"]).await;
    let (mut holder, settler, watcher) = (it.client().await, it.client().await, it.client().await);
    let lease = "insert into reveille.cursor (partition, grp, upto, lease_until, leased_through)
                 values (7, 1, 10, now() + interval '1 minute', 10), (7, 2, 10, now() + interval '1 minute', 10)";
    watcher.execute(lease, &[]).await.unwrap();

    let deleting = holder.transaction().await.unwrap();
    deleting.execute("delete from reveille.cursor where grp = 2", &[]).await.unwrap();
    let settling = spawn(async move {
        let settle = "select said from reveille.settle(array[7], array[2], array[null::uuid], array[10::bigint],
                      array['completed'], array[null::text], array[false])";
        settler.query_one(settle, &[]).await.unwrap().get::<_, String>(0)
    });
    until_blocked(&watcher, 1).await;
    deleting.commit().await.unwrap();

    assert_eq!(soon(settling).await.unwrap(), "lost");
    assert_eq!(number(&watcher, "select committed from reveille.cursor where partition = 7").await, 0);
}

/// The index of partition rows is not unique either: the row in the table partition keeps them
/// single.
#[tokio::test]
async fn of_two_calls_that_create_a_partition_at_once_one_creates_its_row() {
    let it = Fixture::new().await;
    let (mut first, second, watcher) = (it.client().await, it.client().await, it.client().await);
    let ensure = "select from reveille.ensure('mail', array['a', 'b'])";
    first.execute("select from reveille.ensure('mail', array['b'])", &[]).await.unwrap();

    let making = first.transaction().await.unwrap();
    making.execute(ensure, &[]).await.unwrap();
    let waiting = spawn(async move { second.execute(ensure, &[]).await.unwrap() });
    until_blocked(&watcher, 1).await;
    making.commit().await.unwrap();

    assert_eq!(soon(waiting).await.unwrap(), 2);
    assert_eq!(number(&watcher, "select count(*) from reveille.partition_row").await, 2);
    assert_eq!(number(&watcher, "select count(distinct partition) from reveille.partition_row").await, 2);
}

/// A push waits for a partition row that another transaction changes: it counts on from the newer
/// version. There are enough partitions that both batchers have some.
#[tokio::test]
async fn a_push_that_is_overtaken_is_numbered_from_the_newest_version() {
    let it = Fixture::new().await;
    let partitions: Vec<String> = (0..16).map(|n| format!("p{n:02}")).collect();
    for partition in &partitions {
        push_to(&it.messages, "mail", partition, &["1"]).await;
    }
    let (mut holder, watcher) = (it.client().await, it.client().await);
    let held = holder.transaction().await.unwrap();
    let overtake = "update reveille.partition_row set next_seq = next_seq + 5, new_since = null
                    where partition = (select id from reveille.partition where name = 'p07')";
    assert_eq!(held.execute(overtake, &[]).await.unwrap(), 1);

    let messages = it.messages.clone();
    let id = |n: usize| if n.is_multiple_of(2) { Uuid::now_v7().to_string() } else { format!("order {n}") };
    let ids: Vec<String> = (0..partitions.len()).map(id).collect();
    let items = move || partitions.iter().zip(&ids).map(|(to, id)| item("mail", to, "2").transaction_id(id)).collect();
    let sent = items();
    let pushing = spawn(async move { messages.push(sent).await });
    until_blocked(&watcher, 1).await;
    held.commit().await.unwrap();

    let seqs: Vec<i64> = soon(pushing).await.unwrap().iter().map(|pushed| seq(pushed.as_ref().unwrap())).collect();
    let expected: Vec<i64> = (0..16).map(|n| if n == 7 { 7 } else { 2 }).collect();
    assert_eq!(seqs, expected);
    let pushed = "select count(*) from reveille.partition_row where new_since is not null and next_seq in (3, 8)";
    assert_eq!(number(&watcher, pushed).await, 16);
    assert_eq!(number(&watcher, "select count(*) from reveille.segment where payloads = array['2'::bytea]").await, 16);
    assert!(soon(it.messages.push(items())).await.into_iter().all(|again| again.unwrap().is_duplicate()));
}

/// The statement for whole leases leaves out a cursor that was changed while it waited.
#[tokio::test]
async fn an_ack_counts_though_its_partition_is_marked_ready_meanwhile() {
    let it = Fixture::new().await;
    push(&it.messages, "mail", "1").await;
    let batch = pop_queue(&it.messages, "mail", 1).await;
    let (mut holder, watcher) = (it.client().await, it.client().await);
    let held = holder.transaction().await.unwrap();
    held.execute("select from reveille.cursor for update", &[]).await.unwrap();

    let messages = it.messages.clone();
    let acking = spawn(async move { messages.complete(&batch).await });
    until_blocked(&watcher, 1).await;
    push(&it.messages, "mail", "2").await;
    held.execute("select reveille.mark_ready(array(select id from reveille.queue))", &[]).await.unwrap();
    held.commit().await.unwrap();

    let settled = soon(acking).await.unwrap().pop().unwrap().unwrap();
    assert_eq!(settled, Settled::Done { released: true, dead: false });
    assert_eq!(texts(&pop_queue(&it.messages, "mail", 9).await), ["2"]);
}

/// `mark_ready` waits for a cursor that is claimed meanwhile, and marks the new version too:
/// nothing else would.
#[tokio::test]
async fn a_cursor_that_changes_while_it_is_marked_ready_is_marked_ready_all_the_same() {
    let it = Fixture::new().await;
    push(&it.messages, "mail", "1").await;
    pop_queue(&it.messages, "mail", 1).await;
    push(&it.messages, "mail", "2").await;
    let (mut holder, marker, watcher) = (it.client().await, it.client().await, it.client().await);
    let held = holder.transaction().await.unwrap();
    held.execute("update reveille.cursor set epoch = epoch + 1", &[]).await.unwrap();

    let mark_ready = "select reveille.mark_ready(array(select id from reveille.queue))";
    let marking = spawn(async move { marker.execute(mark_ready, &[]).await.unwrap() });
    until_blocked(&watcher, 1).await;
    held.commit().await.unwrap();
    soon(marking).await.unwrap();

    assert_eq!(number(&watcher, "select upto from reveille.cursor").await, 2);
    assert_eq!(number(&watcher, "select count(new_since) from reveille.partition_row").await, 0);
}

/// First while it locks, then while it writes. Whether the second is possible depends on the
/// version of PostgreSQL: some give `mark_ready` the lock of the newer version, and then the other
/// transaction waits for it.
#[tokio::test]
async fn a_cursor_that_changes_twice_while_it_is_marked_ready_is_left_to_the_next_call() {
    let it = Fixture::new().await;
    push(&it.messages, "mail", "1").await;
    let batch = pop_queue(&it.messages, "mail", 1).await;
    it.messages.complete(&batch).await;
    push(&it.messages, "mail", "2").await;
    let (mut holder, marker) = (it.client().await, it.client().await);
    let (other, watcher) = (it.client().await, it.client().await);
    let overtake = "update reveille.cursor set epoch = epoch + 1";
    let held = holder.transaction().await.unwrap();
    held.execute(overtake, &[]).await.unwrap();

    let mark_ready = "select reveille.mark_ready(array(select id from reveille.queue))";
    let mut marking = spawn(async move { marker.execute(mark_ready, &[]).await.unwrap() });
    until_blocked(&watcher, 1).await;
    let overtaking = spawn(async move {
        other.batch_execute(&format!("begin; {overtake}")).await.unwrap();
        other
    });
    until_blocked(&watcher, 2).await;
    held.commit().await.unwrap();
    let other = soon(overtaking).await.unwrap();
    tokio::select! {
        _ = &mut marking => other.batch_execute("commit").await.unwrap(),
        () = until_blocked(&watcher, 1) => {
            other.batch_execute("commit").await.unwrap();
            soon(marking).await.unwrap();
        }
    }

    assert_eq!(stranded(&watcher).await, 0);
}

/// A search that read many entries leaves a low-water mark, and the next search begins there. A
/// waiting pop is woken for what lies before it.
#[tokio::test]
async fn what_fell_due_before_the_low_water_mark_is_found_by_a_waiting_pop() {
    let it = Fixture::new().await;
    push(&it.messages, "mail", "1").await;
    let node = Node::on(&it.db).await.proven().await;
    let first = pop_queue(&node.messages, "mail", 1).await;
    node.messages.complete(&first).await;
    let (holder, client) = (it.client().await, it.client().await);
    hold_snapshot(&holder).await;
    for step in MAKE_DEAD {
        client.execute(step, &[]).await.unwrap();
    }
    none(&node.messages, "mail").await;
    let waiting = node.joined(Pop::queue(queue("mail"))).await;

    // This is not announced. The next pop searches, and its search begins at the mark.
    let back = "update reveille.cursor set committed = 0, due_at = clock_timestamp() - interval '1 minute'";
    assert_eq!(client.execute(back, &[]).await.unwrap(), 1);
    none(&node.messages, "mail").await;

    assert_eq!(texts(&soon(waiting).await.unwrap().expect("there is something")), ["1"]);
}
