//! What wakes a consumer: one test for each change that can make something poppable. In none of
//! them can a heartbeat or fallback polling explain the wake-up. docs/messages.md has the table.

use std::time::Duration;

use reveille::messages::{Batch, DeadLetters, GroupName, Pop, QueueOptions, SeekTo, Settlement, Subscriptions, Switch};
use reveille_testkit::TestDatabase;
use reveille_wake::Cause;
use tokio::task::JoinHandle;

use crate::pop_kit::{Node, group, none, pop_queue, push_to, texts};
use crate::support::{partition, push, queue, soon};

async fn woken(waiting: JoinHandle<Option<Batch>>) -> Vec<String> {
    texts(&soon(waiting).await.expect("does not panic").expect("something came"))
}

fn mail() -> Pop {
    Pop::queue(queue("mail"))
}

/// A queue whose only message is settled: it is known, and empty.
async fn drained(node: &Node, name: &str) {
    push(&node.messages, name, "before").await;
    let batch = pop_queue(&node.messages, name, 1).await;
    node.messages.complete(&batch).await.pop().unwrap().unwrap();
}

#[tokio::test]
async fn a_push_on_this_node_wakes_a_waiting_pop() {
    let db = TestDatabase::new().await;
    let node = Node::on(&db).await.proven().await;
    drained(&node, "mail").await;
    let waiting = node.parked(mail()).await;

    push(&node.messages, "mail", "hello").await;

    assert_eq!(woken(waiting).await, ["hello"]);
    assert_eq!(node.cause_of_last_find(), Some(Cause::Pushed));
}

#[tokio::test]
async fn a_push_on_another_node_wakes_a_waiting_pop() {
    let db = TestDatabase::new().await;
    let (here, there) = (Node::on(&db).await.proven().await, Node::on(&db).await.proven().await);
    drained(&here, "mail").await;
    let waiting = here.parked(mail()).await;

    push(&there.messages, "mail", "hello").await;

    assert_eq!(woken(waiting).await, ["hello"]);
    assert_eq!(here.cause_of_last_find(), Some(Cause::Notified));
}

#[tokio::test]
async fn a_push_by_a_program_that_never_pops_wakes_a_waiting_pop() {
    let db = TestDatabase::new().await;
    let (here, script) = (Node::on(&db).await.proven().await, Node::on(&db).await);
    drained(&here, "mail").await;
    let waiting = here.parked(mail()).await;

    push(&script.messages, "mail", "hello").await;

    assert_eq!(woken(waiting).await, ["hello"]);
}

#[tokio::test]
async fn the_commit_of_a_push_in_sql_wakes_a_waiting_pop_and_not_the_push() {
    let db = TestDatabase::new().await;
    let node = Node::on(&db).await.proven().await;
    drained(&node, "mail").await;
    let waiting = node.parked(mail()).await;
    let rounds = node.rounds();
    let mut client = db.client().await;

    let transaction = client.transaction().await.unwrap();
    transaction.execute("select reveille.push('mail', '\"hello\"'::json)", &[]).await.unwrap();
    assert_eq!(node.rounds(), rounds, "no claim round before the commit");
    transaction.commit().await.unwrap();

    assert_eq!(woken(waiting).await, ["\"hello\""]);
    assert_eq!(node.cause_of_last_find(), Some(Cause::Notified));
}

#[tokio::test]
async fn a_push_in_sql_creates_the_queue_that_a_pop_waits_for() {
    let db = TestDatabase::new().await;
    let node = Node::on(&db).await.proven().await;
    let waiting = node.parked(Pop::queue(queue("later"))).await;

    db.client().await.execute("select reveille.push('later', '\"hello\"'::json)", &[]).await.unwrap();

    assert_eq!(woken(waiting).await, ["\"hello\""]);
}

#[tokio::test]
async fn a_push_in_sql_creates_the_queue_whose_namespace_a_pop_waits_for() {
    let db = TestDatabase::new().await;
    let (notified, silent_db) = (Node::on(&db).await.proven().await, TestDatabase::new().await);
    let beating = Node::at(&silent_db.url(), Duration::from_millis(200)).await.proven().await;
    let waiting = [notified.parked(Pop::namespace("shop")).await, beating.parked(Pop::task("later")).await];

    db.client().await.execute("select reveille.push('shop.later', '\"hello\"'::json)", &[]).await.unwrap();
    // This one is not announced.
    let silent = "insert into reveille.outbox (queue, partition, message_id, payload)
         values ('shop.later', 'a', gen_random_uuid(), '\"hello\"')";
    silent_db.client().await.execute(silent, &[]).await.unwrap();

    for waiting in waiting {
        assert_eq!(woken(waiting).await, ["\"hello\""]);
    }
}

/// While pushes are paused nothing can be moved, so there is no reason for another claim round.
#[tokio::test]
async fn a_push_that_is_kept_back_causes_no_claim_rounds_again_and_again() {
    let db = TestDatabase::new().await;
    let node = Node::on(&db).await.proven().await;
    node.messages.turn(Switch::PushPaused, true).await.unwrap();
    db.client().await.execute("select reveille.push('shop.later', '\"hello\"'::json)", &[]).await.unwrap();
    let waiting = [
        node.parked(Pop::queue(queue("shop.later"))).await,
        node.parked(Pop::namespace("shop").group(group("a"))).await,
    ];

    let rounds = node.rounds();
    tokio::time::sleep(Duration::from_millis(300)).await; // tidy: sleep because further rounds need time to show
    let more = node.rounds() - rounds;
    node.messages.turn(Switch::PushPaused, false).await.unwrap();

    assert!(more <= 3, "{more} claim rounds for what cannot come");
    for waiting in waiting {
        assert_eq!(woken(waiting).await, ["\"hello\""]);
    }
}

#[tokio::test]
async fn the_first_push_to_a_queue_wakes_pops_that_wait_for_the_queue() {
    let db = TestDatabase::new().await;
    let (here, there) = (Node::on(&db).await.proven().await, Node::on(&db).await.proven().await);
    let waiting = [
        here.parked(Pop::queue(queue("shop.later"))).await,
        there.parked(Pop::partition(queue("shop.later"), partition("Default")).group(group("a"))).await,
        here.parked(Pop::namespace("shop").group(group("b"))).await,
        there.parked(Pop::task("later").group(group("c"))).await,
    ];

    push(&here.messages, "shop.later", "hello").await;

    for waiting in waiting {
        assert_eq!(woken(waiting).await, ["hello"]);
    }
}

#[tokio::test]
async fn the_first_push_to_a_partition_wakes_pops_that_wait_for_the_partition() {
    let db = TestDatabase::new().await;
    let (here, there) = (Node::on(&db).await.proven().await, Node::on(&db).await.proven().await);
    drained(&here, "mail").await;
    let waiting = here.parked(Pop::partition(queue("mail"), partition("later"))).await;
    let elsewhere = there.parked(Pop::partition(queue("mail"), partition("later")).group(group("a"))).await;

    push_to(&here.messages, "mail", "other", &["not this"]).await;
    push_to(&here.messages, "mail", "later", &["hello"]).await;

    assert_eq!(woken(waiting).await, ["hello"]);
    assert_eq!(woken(elsewhere).await, ["hello"]);
}

#[tokio::test]
async fn a_push_wakes_a_pop_that_waits_for_its_namespace() {
    let db = TestDatabase::new().await;
    let node = Node::on(&db).await.proven().await;
    drained(&node, "shop.mail").await;
    drained(&node, "shop.bills").await;
    let waiting = node.parked(Pop::namespace("shop")).await;

    push(&node.messages, "shop.bills", "hello").await;

    assert_eq!(woken(waiting).await, ["hello"]);
    assert_eq!(node.cause_of_last_find(), Some(Cause::Pushed));
}

#[tokio::test]
async fn an_ack_that_frees_a_partition_wakes_a_waiting_pop_here_and_elsewhere() {
    let db = TestDatabase::new().await;
    let (here, there) = (Node::on(&db).await.proven().await, Node::on(&db).await.proven().await);
    push_to(&here.messages, "mail", "a", &["1", "2", "3"]).await;
    let first = pop_queue(&here.messages, "mail", 1).await;
    let waiting = there.parked(mail()).await;

    here.messages.complete(&first).await.pop().unwrap().unwrap();
    let second = soon(waiting).await.unwrap().unwrap();
    let waiting = there.joined(mail()).await;
    there.messages.complete(&second).await.pop().unwrap().unwrap();

    assert_eq!((texts(&second), woken(waiting).await), (vec!["2".to_owned()], vec!["3".to_owned()]));
    assert_eq!(there.cause_of_last_find(), Some(Cause::Settled));
}

#[tokio::test]
async fn a_release_wakes_a_waiting_pop() {
    let db = TestDatabase::new().await;
    let (here, there) = (Node::on(&db).await.proven().await, Node::on(&db).await.proven().await);
    push(&here.messages, "mail", "hello").await;
    let first = pop_queue(&here.messages, "mail", 1).await;
    let waiting = there.parked(mail()).await;

    assert_eq!(here.messages.release(first.lease.unwrap()).await.unwrap(), 1);

    let batch = soon(waiting).await.unwrap().unwrap();
    assert_eq!((texts(&batch), batch.partitions[0].deliveries), (vec!["hello".to_owned()], 1));
}

#[tokio::test]
async fn a_retry_wakes_a_waiting_pop_when_its_delay_is_over_and_not_before() {
    let db = TestDatabase::new().await;
    let (here, there) = (Node::on(&db).await.proven().await, Node::on(&db).await.proven().await);
    push(&here.messages, "mail", "hello").await;
    let client = db.client().await;
    client.execute("update reveille.queue set retry_delay = '700 ms'", &[]).await.unwrap();
    let first = pop_queue(&here.messages, "mail", 1).await;
    let waiting = there.parked(mail()).await;

    let failed = Settlement::fail(&first.partitions[0], 1, "no");
    here.messages.settle(vec![failed]).await.pop().unwrap().unwrap();
    let due = client.query_one("select due_at from reveille.cursor", &[]).await.unwrap();

    assert_eq!(woken(waiting).await, ["hello"]);
    assert_eq!(there.cause_of_last_find(), Some(Cause::Due));
    let early = "select lease_until - interval '60 s' < $1 from reveille.cursor";
    let due: std::time::SystemTime = due.get(0);
    assert!(!client.query_one(early, &[&due]).await.unwrap().get::<_, bool>(0), "popped before it was due");
}

#[tokio::test]
async fn the_end_of_a_lease_wakes_a_waiting_pop_here_and_elsewhere() {
    let db = TestDatabase::new().await;
    let (here, there) = (Node::on(&db).await.proven().await, Node::on(&db).await.proven().await);
    push(&here.messages, "mail", "hello").await;
    db.client().await.execute("update reveille.queue set lease = '500 ms'", &[]).await.unwrap();
    let first = pop_queue(&here.messages, "mail", 1).await;
    let waiting = there.parked(mail()).await;

    let batch = soon(waiting).await.unwrap().unwrap();
    let third = here.parked(mail()).await;

    assert_eq!((texts(&batch), batch.partitions[0].deliveries), (texts(&first), 2));
    assert_eq!(woken(third).await, ["hello"]);
}

#[tokio::test]
async fn a_delayed_message_wakes_a_waiting_pop_at_its_time() {
    let db = TestDatabase::new().await;
    let (here, there) = (Node::on(&db).await.proven().await, Node::on(&db).await.proven().await);
    drained(&here, "mail").await;
    let client = db.client().await;
    client.execute("update reveille.queue set delay = '600 ms'", &[]).await.unwrap();
    let waiting = there.parked(mail()).await;

    push(&here.messages, "mail", "hello").await;
    none(&here.messages, "mail").await;

    assert_eq!(woken(waiting).await, ["hello"]);
    let early = "select cursor.lease_until - interval '60 s' < segment.at + interval '600 ms'
         from reveille.cursor join reveille.segment on segment.partition = cursor.partition and segment.last_seq = 2";
    assert!(!client.query_one(early, &[]).await.unwrap().get::<_, bool>(0), "popped before it was due");
}

#[tokio::test]
async fn a_window_that_closes_wakes_a_waiting_pop() {
    let db = TestDatabase::new().await;
    let node = Node::on(&db).await.proven().await;
    drained(&node, "mail").await;
    db.client().await.execute("update reveille.queue set window_buffer = '600 ms'", &[]).await.unwrap();
    let waiting = node.parked(mail().batch(10)).await;

    push(&node.messages, "mail", "1").await;
    push(&node.messages, "mail", "2").await;

    assert_eq!(woken(waiting).await, ["1", "2"]);
}

#[tokio::test]
async fn dead_letters_that_are_redriven_wake_a_waiting_pop() {
    let db = TestDatabase::new().await;
    let node = Node::on(&db).await.proven().await;
    push(&node.messages, "mail", "hello").await;
    let first = pop_queue(&node.messages, "mail", 1).await;
    let dead = Settlement::dead(&first.partitions[0], 1, "no");
    node.messages.settle(vec![dead]).await.pop().unwrap().unwrap();
    let waiting = node.parked(mail()).await;

    assert_eq!(node.messages.redrive_all(&DeadLetters::all()).await.unwrap(), 1);

    assert_eq!(woken(waiting).await, ["hello"]);
}

#[tokio::test]
async fn the_end_of_a_pop_by_a_client_that_went_away_wakes_the_next() {
    let db = TestDatabase::new().await;
    let (here, there) = (Node::on(&db).await.proven().await, Node::on(&db).await.proven().await);
    drained(&here, "mail").await;
    let gone = here.parked(mail()).await;
    gone.abort();
    let waiting = there.parked(mail()).await;

    push(&here.messages, "mail", "hello").await;

    assert_eq!(woken(waiting).await, ["hello"]);
}

#[tokio::test]
async fn a_seek_wakes_a_waiting_pop_here_and_elsewhere() {
    let db = TestDatabase::new().await;
    let (here, there) = (Node::on(&db).await.proven().await, Node::on(&db).await.proven().await);
    drained(&here, "mail").await;
    let waiting = there.parked(mail()).await;

    here.messages.seek(&queue("mail"), &GroupName::queue_mode(), None, SeekTo::Beginning).await.unwrap();

    assert_eq!(woken(waiting).await, ["before"]);
}

#[tokio::test]
async fn the_end_of_a_pause_wakes_a_waiting_pop_here_and_elsewhere() {
    let db = TestDatabase::new().await;
    let (here, there) = (Node::on(&db).await.proven().await, Node::on(&db).await.proven().await);
    push(&here.messages, "mail", "hello").await;
    here.messages.pause(&queue("mail")).await.unwrap();
    let waiting = [here.parked(mail()).await, there.parked(mail().group(group("a"))).await];

    here.messages.resume(&queue("mail")).await.unwrap();

    for waiting in waiting {
        assert_eq!(woken(waiting).await, ["hello"]);
    }
}

#[tokio::test]
async fn the_end_of_the_pause_of_everything_wakes_a_waiting_pop_here_and_elsewhere() {
    let db = TestDatabase::new().await;
    let (here, there) = (Node::on(&db).await.proven().await, Node::on(&db).await.proven().await);
    push(&here.messages, "mail", "hello").await;
    here.messages.turn(Switch::PopPaused, true).await.unwrap();
    let waiting = [here.parked(mail()).await, there.parked(mail().group(group("a"))).await];

    here.messages.turn(Switch::PopPaused, false).await.unwrap();

    for waiting in waiting {
        assert_eq!(woken(waiting).await, ["hello"]);
    }
}

#[tokio::test]
async fn a_delay_that_is_taken_away_wakes_a_waiting_pop() {
    let db = TestDatabase::new().await;
    let node = Node::on(&db).await.proven().await;
    node.messages.configure(&queue("mail"), &QueueOptions::default().delay(Duration::from_secs(3600))).await.unwrap();
    push(&node.messages, "mail", "hello").await;
    let waiting = node.parked(mail()).await;

    node.messages.configure(&queue("mail"), &QueueOptions::default().delay(Duration::ZERO)).await.unwrap();

    assert_eq!(woken(waiting).await, ["hello"]);
}

#[tokio::test]
async fn a_queue_that_moves_to_a_namespace_wakes_pops_that_wait_for_the_namespace() {
    let db = TestDatabase::new().await;
    let (here, there) = (Node::on(&db).await.proven().await, Node::on(&db).await.proven().await);
    push(&here.messages, "mail", "hello").await;
    let waiting = there.parked(Pop::namespace("shop")).await;

    here.messages.configure(&queue("mail"), &QueueOptions::default().namespace("shop")).await.unwrap();

    assert_eq!(woken(waiting).await, ["hello"]);
}

#[tokio::test]
async fn a_pop_outlives_its_queue_and_its_group() {
    let db = TestDatabase::new().await;
    let (here, there) = (Node::on(&db).await.proven().await, Node::on(&db).await.proven().await);
    drained(&here, "mail").await;
    let waiting = there.parked(mail().group(group("a"))).await;
    here.messages.delete_group(Some(&queue("mail")), &group("a"), Subscriptions::Forget).await.unwrap();
    assert_eq!(woken(waiting).await, ["before"], "the group is new to the queue, and sees everything");

    let waiting = there.parked(mail()).await;
    assert!(here.messages.delete_queue(&queue("mail")).await.unwrap());
    push(&here.messages, "mail", "after").await;

    assert_eq!(woken(waiting).await, ["after"]);
}

/// Hints that were sent while no listener was connected are made up for by a search.
#[tokio::test]
async fn a_listener_that_comes_back_wakes_every_waited_key() {
    let db = TestDatabase::new().await;
    let node = Node::on(&db).await.proven().await;
    drained(&node, "mail").await;
    let waiting = node.parked(mail()).await;
    let client = db.client().await;

    let silently = "begin;
         update reveille.partition_row set next_seq = next_seq + 1, new_since = clock_timestamp();
         insert into reveille.segment (partition, last_seq, n, bytes, at, ids, payloads)
         select partition, next_seq - 1, 1, 5, clock_timestamp(), array[gen_random_uuid()], array['hello'::bytea]
         from reveille.partition_row;
         commit";
    client.batch_execute(silently).await.unwrap();
    let kill = "select count(pg_terminate_backend(pid)) from pg_stat_activity
         where datname = current_database() and application_name = 'reveille listen'";
    assert_eq!(client.query_one(kill, &[]).await.unwrap().get::<_, i64>(0), 1);

    assert_eq!(woken(waiting).await, ["hello"]);
}

/// No node sends a hint: the rows were written by hand.
#[tokio::test]
async fn the_heartbeat_finds_what_nobody_announced() {
    let db = TestDatabase::new().await;
    let node = Node::at(&db.url(), Duration::from_millis(200)).await.proven().await;
    drained(&node, "mail").await;
    let waiting = node.parked(mail()).await;

    let client = db.client().await;
    client
        .batch_execute(
            "begin;
             update reveille.partition_row set next_seq = next_seq + 1, new_since = clock_timestamp();
             insert into reveille.segment (partition, last_seq, n, bytes, at, ids, payloads)
             select partition, next_seq - 1, 1, 5, clock_timestamp(), array[gen_random_uuid()], array['hello'::bytea]
             from reveille.partition_row;
             commit",
        )
        .await
        .unwrap();

    assert_eq!(woken(waiting).await, ["hello"]);
}

#[tokio::test]
async fn the_heartbeat_finds_queues_and_partitions_that_nobody_announced() {
    let db = TestDatabase::new().await;
    let node = Node::at(&db.url(), Duration::from_millis(200)).await.proven().await;
    drained(&node, "mail").await;
    let waiting = [
        node.parked(Pop::queue(queue("shop.'; later"))).await,
        node.parked(Pop::partition(queue("mail"), partition("a/b c"))).await,
        node.parked(Pop::namespace("shop").group(group("b"))).await,
    ];
    let add = |name: &str, part: &str| {
        format!(
            "select * from reveille.ensure($${name}$$, array[$${part}$$]);
             update reveille.partition_row set next_seq = 2, new_since = clock_timestamp() where next_seq = 1;
             insert into reveille.segment (partition, last_seq, n, bytes, at, ids, payloads)
             select partition, 1, 1, 5, clock_timestamp(), array[gen_random_uuid()], array['hello'::bytea]
             from reveille.partition_row on conflict do nothing;"
        )
    };

    db.client().await.batch_execute(&(add("shop.'; later", "x") + &add("mail", "a/b c"))).await.unwrap();

    for waiting in waiting {
        assert_eq!(woken(waiting).await, ["hello"]);
    }
}
