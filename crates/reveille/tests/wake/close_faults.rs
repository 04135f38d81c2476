//! Closing while the database is away: late by a stated time at most.

use std::time::{Duration, Instant};

use reveille::database::{Database, DatabaseOptions};
use reveille_testkit::plain_queue::{Node, NodeOptions, SOURCE};
use reveille_wake::Cause;

use tokio::time::timeout;

use crate::support::{broke, database};

#[tokio::test]
async fn a_close_does_not_wait_for_a_link_that_fell_silent() {
    let database = database().await;
    let (proxy, through) = database.proxied().await;
    let mut options = NodeOptions::new(database.url()).heartbeat(Duration::from_millis(100));
    options.database = options.database.listen_url(through);
    for beat_is_under_way in [true, false] {
        let node = Node::start(options.clone()).await;
        let mut events = node.events.reader_from_now();
        proxy.half_open();
        if !beat_is_under_way {
            events.until(broke).await;
        }

        let began = Instant::now();
        timeout(Duration::from_secs(20), node.close()).await.expect("a close has an end");

        assert!(began.elapsed() < Duration::from_secs(3), "{:?}: 1 s to leave, and slack", began.elapsed());
        proxy.heal();
        proxy.cut();
    }
}

#[tokio::test]
async fn a_close_waits_two_seconds_for_hints_that_cannot_be_sent() {
    let database = database().await;
    let (proxy, through) = database.proxied().await;
    let pusher = Database::connect(DatabaseOptions::new(through)).await.unwrap();
    pusher.broadcaster().announce(SOURCE, &"mail".to_owned(), Cause::Pushed);
    pusher.broadcaster().flush().await;
    assert_eq!(pusher.wake_figures().sent, 1);
    proxy.half_open();
    pusher.broadcaster().announce(SOURCE, &"mail".to_owned(), Cause::Pushed);

    let began = Instant::now();
    pusher.close().await;
    let closing = began.elapsed();
    pusher.broadcaster().announce(SOURCE, &"mail".to_owned(), Cause::Pushed);
    pusher.broadcaster().flush().await;
    pusher.close().await;

    assert!(closing < Duration::from_secs(9), "{closing:?}: 2 s for hints, 5 s for what is in flight, and slack");
    assert!(began.elapsed() < closing + Duration::from_secs(1), "there is no task left to wait for");
}

#[tokio::test]
async fn nothing_announced_is_nothing_to_wait_for() {
    let database = database().await;
    let idle = Database::connect(DatabaseOptions::new(database.url())).await.unwrap();

    let began = Instant::now();
    idle.broadcaster().flush().await;
    idle.close().await;

    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
}
