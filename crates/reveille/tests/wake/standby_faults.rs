//! A failover: the primary is gone, its standby takes over, and nodes that know both go on.

use std::time::{Duration, Instant};

use reveille::database::{Database, DatabaseOptions};
use reveille_testkit::connect;
use reveille_testkit::plain_queue::{self, Node, NodeOptions};
use reveille_wake::Answer;
use tokio_postgres::Client;

use crate::support::cluster::Cluster;
use crate::support::{NEVER, broke, parked, proven};

async fn until_true(client: &Client, question: &str) {
    let began = Instant::now();
    while !client.query_one(question, &[]).await.unwrap().get::<_, bool>(0) {
        assert!(began.elapsed() < Duration::from_secs(20), "in vain: {question}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The standby stands first in the list, so that it is also the one that is refused before the
/// failover.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_promoted_standby_is_found_and_work_goes_on() {
    let mut primary = Cluster::new();
    let url = primary.url("postgres");
    Database::connect(DatabaseOptions::new(&url)).await.unwrap().migrate().await.unwrap();
    let client = connect(&url).await;
    plain_queue::create(&client).await;
    let follow = format!("alter system set primary_conninfo = '{}'", primary.url("postgres"));
    client.batch_execute(&follow).await.unwrap();
    drop(client);
    let standby = tokio::task::block_in_place(|| primary.standby());
    let client = connect(&url).await;
    until_true(&client, "select exists (select from pg_stat_replication where state = 'streaming')").await;
    let both = format!(
        "host={},{} port={},{} user=postgres dbname=postgres",
        standby.dir().display(),
        primary.dir().display(),
        standby.port(),
        primary.port()
    );
    let node = Node::start(NodeOptions::new(&both).heartbeat(NEVER)).await;
    let pusher = Node::start(NodeOptions::new(&both).heartbeat(NEVER)).await;
    let waiting = node.ask("mail");
    parked(&node).await;
    plain_queue::add_silently(&client, "later", 1, 0.0).await;
    until_true(&client, "select bool_and(replay_lsn >= pg_current_wal_lsn()) from pg_stat_replication").await;
    let mut events = node.events.reader_from_now();
    let mut pushers = pusher.events.reader_from_now();

    drop(client);
    tokio::task::block_in_place(|| drop(primary));
    events.until(broke).await;
    let promoted = connect(&standby.url("postgres")).await;
    promoted.execute("select pg_promote()", &[]).await.unwrap();
    let began = Instant::now();
    events.until(proven).await;
    let back_after = began.elapsed();
    pushers.until(proven).await;

    assert_eq!(node.take("later").await.queue, "later", "what was committed before");
    pusher.push("mail", 1).await;
    assert!(matches!(waiting.await, Answer::Lease(_)), "and what comes after");
    assert!(back_after < Duration::from_secs(8), "{back_after:?}: at most 5 s between two tries, and slack");
    node.close().await;
    pusher.close().await;
}
