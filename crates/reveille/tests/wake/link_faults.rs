//! Every way to lose the connection that brings hints. Rows are added without a hint, so that only
//! what the engine does about the fault can find them.

use std::time::{Duration, Instant};

use reveille::database::DatabaseOptions;
use reveille_testkit::plain_queue::{self, Node, NodeOptions};
use reveille_testkit::{Shutdown, TestCluster, connect};
use reveille_wake::{Answer, Cause, Event, Link};

use crate::support::{NEVER, broke, database, parked, proven, terminate};

const SOON: Duration = Duration::from_millis(200);

/// Under 50 ms late when the reconnect succeeds at once. What a plain connection takes at the same
/// time is allowed beside that, and the best of a few counts: tests share their machine.
#[tokio::test]
async fn a_terminated_listener_comes_back_at_once_and_finds_what_it_missed() {
    let database = database().await;
    let node = Node::start(NodeOptions::new(database.url()).heartbeat(NEVER)).await;
    let client = database.client().await;
    let mut soonest = Duration::MAX;
    for round in 1..=5 {
        let waiting = node.ask("mail");
        parked(&node).await;
        let mut events = node.events.reader_from_now();

        let began = Instant::now();
        assert_eq!(terminate(&client, "listen").await, 1);
        plain_queue::add_silently(&client, "mail", 1, 0.0).await;

        assert!(matches!(waiting.await, Answer::Lease(_)));
        let late = began.elapsed();
        let connecting = Instant::now();
        drop(connect(&database.url()).await);
        soonest = soonest.min(late.saturating_sub(connecting.elapsed()));
        events.until(broke).await;
        events.until(proven).await;
        assert_eq!(node.database.wake_figures().connects, round + 1);
    }
    assert!(soonest < Duration::from_millis(50), "{soonest:?}");
}

#[tokio::test]
async fn a_cut_connection_is_made_again() {
    let database = database().await;
    let (proxy, through) = database.proxied().await;
    let mut options = NodeOptions::new(database.url()).heartbeat(NEVER);
    options.database = options.database.listen_url(through);
    let node = Node::start(options).await;
    let waiting = node.ask("mail");
    parked(&node).await;
    let mut events = node.events.reader_from_now();

    proxy.cut();
    plain_queue::add_silently(&database.client().await, "mail", 1, 0.0).await;

    assert!(matches!(waiting.await, Answer::Lease(_)));
    events.until(proven).await;
}

/// A half-open connection reports no error for hours; the heartbeat's echo finds it.
#[tokio::test]
async fn a_stalled_connection_is_found_two_seconds_after_a_heartbeat_and_work_goes_on() {
    let database = database().await;
    let (proxy, through) = database.proxied().await;
    let mut options = NodeOptions::new(database.url()).heartbeat(SOON);
    options.database = options.database.listen_url(through);
    let node = Node::start(options).await;
    let waiting = node.ask("mail");
    parked(&node).await;
    let mut events = node.events.reader_from_now();

    let began = Instant::now();
    proxy.half_open();
    events.until(broke).await;
    let found_after = began.elapsed();
    plain_queue::add_silently(&database.client().await, "mail", 1, 0.0).await;

    assert!(matches!(waiting.await, Answer::Lease(_)), "fallback polling finds it while the link is down");
    assert!(found_after < Duration::from_secs(5), "{found_after:?}: a heartbeat of 0.2 s, 2 s for the echo, and slack");
    proxy.heal();
    proxy.cut();
    events.until(proven).await;
}

#[tokio::test]
async fn a_refused_connection_is_tried_again_until_it_is_accepted() {
    let database = database().await;
    let (proxy, through) = database.proxied().await;
    let mut options = NodeOptions::new(database.url()).heartbeat(NEVER);
    options.database = options.database.listen_url(through);
    let node = Node::start(options).await;
    let mut events = node.events.reader_from_now();

    proxy.refuse();
    events.until(|event| matches!(event, Event::Link(Link::Lost { attempts, .. }) if *attempts >= 3)).await;
    let waiting = node.ask("mail");
    plain_queue::add_silently(&database.client().await, "mail", 1, 0.0).await;
    assert!(matches!(waiting.await, Answer::Lease(_)), "demands poll while no hint can arrive");
    proxy.heal();

    events.until(proven).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restarted_and_a_crashed_database_cost_no_work() {
    let cluster = TestCluster::start(|options| options);
    let url = cluster.url("postgres");
    reveille::database::Database::connect(DatabaseOptions::new(&url)).await.unwrap().migrate().await.unwrap();
    plain_queue::create(&connect(&url).await).await;
    let node = Node::start(NodeOptions::new(&url).heartbeat(NEVER)).await;

    for how in [Shutdown::Fast, Shutdown::Kill] {
        let waiting = node.ask("mail");
        let mut events = node.events.reader_from_now();
        tokio::task::block_in_place(|| cluster.restart(how));
        plain_queue::add_silently(&connect(&url).await, "mail", 1, 0.0).await;

        assert!(matches!(waiting.await, Answer::Lease(_)), "after {how:?}");
        events.until(proven).await;
    }
    node.close().await;
}

#[tokio::test]
async fn a_broadcaster_that_lost_its_connection_hints_at_everything_when_it_is_back() {
    let database = database().await;
    let pusher = Node::start(NodeOptions::new(database.url()).heartbeat(NEVER)).await;
    let node = Node::start(NodeOptions::new(database.url()).heartbeat(NEVER)).await;
    let first = node.take("mail");
    pusher.push("mail", 1).await;
    first.await;
    let waiting = node.ask("mail");

    let client = database.client().await;
    assert_eq!(terminate(&client, "broadcaster").await, 1);
    pusher.push("mail", 1).await;

    assert!(matches!(waiting.await, Answer::Lease(_)));
}

/// The pusher dies between its commit and its hint: no hint is sent, and its row is not silent yet.
#[tokio::test]
async fn a_hint_that_was_never_sent_costs_one_heartbeat() {
    let database = database().await;
    let node = Node::start(NodeOptions::new(database.url()).heartbeat(SOON)).await;
    let waiting = node.ask("mail");
    parked(&node).await;

    plain_queue::add_silently(&database.client().await, "mail", 1, 0.0).await;

    assert!(matches!(waiting.await, Answer::Lease(_)));
    let found = node.events.count(|event| matches!(event, Event::Woken { cause: Cause::Due | Cause::Heartbeat, .. }));
    assert!(found > 0);
}

/// Commits its row, listens, then claims: a producer meanwhile sees the row, or the claim finds its
/// work.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_joins_while_another_pushes_misses_nothing() {
    let database = database().await;
    let pusher = Node::start(NodeOptions::new(database.url()).heartbeat(NEVER)).await;

    for round in 0..40 {
        let queue = format!("mail-{round}");
        let joining = async {
            let node = Node::start_unproven(NodeOptions::new(database.url()).heartbeat(NEVER)).await;
            let taken = node.take(&queue).await;
            node.close().await;
            taken
        };
        let pushing = async {
            // A different moment of joining in every round.
            tokio::time::sleep(Duration::from_micros(500 * round)).await;
            pusher.push(&queue, 1).await;
        };
        let (taken, ()) = tokio::join!(joining, pushing);

        assert_eq!(taken.queue, queue);
    }
}

#[tokio::test]
async fn fallback_polling_ends_when_the_link_is_proven_again() {
    let database = database().await;
    let node = Node::start(NodeOptions::new(database.url()).heartbeat(NEVER)).await;
    let _waiting = node.ask("mail");
    parked(&node).await;
    let mut events = node.events.reader_from_now();

    terminate(&database.client().await, "listen").await;

    events.until(|event| matches!(event, Event::PollMode(change) if change.to.is_fallback())).await;
    events.until(|event| matches!(event, Event::PollMode(change) if !change.to.is_fallback())).await;
}
