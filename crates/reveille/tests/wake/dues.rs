//! Rows that become ready by time alone.

use std::time::{Duration, Instant};

use reveille_testkit::plain_queue::{self, Node, NodeOptions};
use reveille_wake::Answer;

use crate::support::{NEVER, database, parked};

const SOON: Duration = Duration::from_millis(100);
/// Far more than it takes, far less than any fallback: lateness itself is measured by the bench.
const LATE: Duration = Duration::from_secs(5);

/// B8: timers that no notification announces.
#[tokio::test]
async fn a_row_scheduled_before_start_up_is_taken_when_it_is_due_and_not_before() {
    let database = database().await;
    plain_queue::add_silently(&database.client().await, "mail", 1, 0.4).await;
    let began = Instant::now();
    let node = Node::start(NodeOptions::new(database.url()).heartbeat(NEVER)).await;

    node.take("mail").await;

    let took = began.elapsed();
    assert!(took >= Duration::from_millis(390) && took < LATE, "{took:?}");
    assert_eq!(node.counters.missed(), 0);
}

#[tokio::test]
async fn a_due_time_that_was_not_announced_is_read_by_the_heartbeat() {
    let database = database().await;
    let node = Node::start(NodeOptions::new(database.url()).heartbeat(SOON)).await;
    let waiting = node.ask("mail");
    parked(&node).await;
    let began = Instant::now();

    plain_queue::add_silently(&database.client().await, "mail", 1, 0.5).await;

    assert!(matches!(waiting.await, Answer::Lease(_)));
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(490) && took < LATE, "{took:?}");
}

/// B4, B5: with two timers the second must not be forgotten, nor an unrelated success wipe one.
#[tokio::test]
async fn every_one_of_several_due_times_fires() {
    let database = database().await;
    let client = database.client().await;
    for due_in_s in [0.2, 0.4, 0.6] {
        plain_queue::add_silently(&client, "mail", 1, due_in_s).await;
    }
    plain_queue::add_silently(&client, "other", 1, 0.0).await;
    let node = Node::start(NodeOptions::new(database.url()).heartbeat(NEVER)).await;

    let began = Instant::now();
    node.take("other").await;
    for _ in 0..3 {
        node.take("mail").await;
    }

    assert!(began.elapsed() < LATE);
}

/// B6: a due time moved earlier while all demands sleep towards the later one.
#[tokio::test]
async fn a_due_time_moved_earlier_is_noticed_within_a_heartbeat() {
    let database = database().await;
    let client = database.client().await;
    plain_queue::add_silently(&client, "mail", 1, 3600.0).await;
    let node = Node::start(NodeOptions::new(database.url()).heartbeat(SOON)).await;
    let waiting = node.ask("mail");
    parked(&node).await;
    let began = Instant::now();

    client.execute("update todo set due_at = clock_timestamp() + interval '300 ms'", &[]).await.unwrap();

    assert!(matches!(waiting.await, Answer::Lease(_)));
    assert!(began.elapsed() >= Duration::from_millis(290) && began.elapsed() < LATE);
}

#[tokio::test]
async fn a_delay_announced_by_another_node_is_kept_without_a_heartbeat() {
    let database = database().await;
    let node = Node::start(NodeOptions::new(database.url()).heartbeat(NEVER)).await;
    let pusher = Node::start(NodeOptions::new(database.url()).heartbeat(NEVER)).await;
    let waiting = node.ask("mail");
    parked(&node).await;
    let began = Instant::now();

    plain_queue::add_silently(&database.client().await, "mail", 1, 0.3).await;
    pusher.database.broadcaster().announce_after(plain_queue::SOURCE, &"mail".to_owned(), Duration::from_millis(300));

    assert!(matches!(waiting.await, Answer::Lease(_)));
    assert!(began.elapsed() >= Duration::from_millis(290) && began.elapsed() < LATE);
}

/// No reaper: the end of a lease is a due time like any other.
#[tokio::test]
async fn the_lease_of_a_node_that_died_is_taken_over_when_it_ends() {
    let database = database().await;
    let lease = Duration::from_millis(500);
    let options = NodeOptions::new(database.url()).heartbeat(NEVER).lease(lease);
    let dying = Node::start(options.clone()).await;
    let heir = Node::start(options).await;
    dying.push("mail", 1).await;
    let first = dying.take("mail").await;
    let began = Instant::now();
    drop(dying);

    let second = heir.take("mail").await;

    assert_eq!((second.id, second.epoch), (first.id, first.epoch + 1));
    assert!(began.elapsed() < lease + LATE);
}
