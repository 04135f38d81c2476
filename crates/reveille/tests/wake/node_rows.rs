//! The rows of the nodes, by which they know each other.

use std::time::Duration;

use reveille_testkit::TestDatabase;
use reveille_testkit::plain_queue::{self, Node, NodeOptions};
use reveille_wake::{Cause, Event};
use tokio_postgres::Client;

const SOON: Duration = Duration::from_millis(100);

async fn rows(client: &Client) -> i64 {
    client.query_one("select count(*) from reveille.node", &[]).await.expect("nodes can be counted").get(0)
}

#[tokio::test]
async fn a_node_has_a_row_while_it_lives() {
    let database = TestDatabase::new().await;
    let client = database.client().await;
    plain_queue::create(&client).await;

    let node = Node::start(NodeOptions::new(database.url())).await;
    assert_eq!(rows(&client).await, 1);
    node.close().await;

    assert_eq!(rows(&client).await, 0);
}

/// A node may die between its commit and its hint.
#[tokio::test]
async fn a_node_that_falls_silent_wakes_every_key_and_is_forgotten() {
    let database = TestDatabase::new().await;
    let client = database.client().await;
    plain_queue::create(&client).await;
    let node = Node::start(NodeOptions::new(database.url()).heartbeat(SOON)).await;
    let mut events = node.events.reader_from_now();
    client
        .execute("insert into reveille.node (id, name, beat_at) values (1, 'dying', clock_timestamp())", &[])
        .await
        .unwrap();

    events.until(|event| matches!(event, Event::Woken { cause: Cause::PeerLost, .. })).await;

    let beats = node.database.wake_figures().beats;
    while rows(&client).await > 1 {
        assert!(node.database.wake_figures().beats < beats + 100, "the dead row stays");
        tokio::task::yield_now().await;
    }
    node.close().await;
}

/// Its heartbeat was so late that the other nodes sent it no hints meanwhile.
#[tokio::test]
async fn a_node_that_was_taken_for_dead_wakes_every_key_when_it_notices() {
    let database = TestDatabase::new().await;
    let client = database.client().await;
    plain_queue::create(&client).await;
    let node = Node::start(NodeOptions::new(database.url()).heartbeat(SOON)).await;
    for given_up in ["delete from reveille.node", "update reveille.node set beat_at = beat_at - interval '1 day'"] {
        let mut events = node.events.reader_from_now();

        client.batch_execute(given_up).await.unwrap();

        events.until(|event| matches!(event, Event::Woken { cause: Cause::Reconnected, .. })).await;
        assert_eq!(rows(&client).await, 1);
    }
    assert!(node.database.link().is_proven());
    node.close().await;
}

#[tokio::test]
async fn nodes_of_another_schema_receive_no_hints_of_ours() {
    let database = TestDatabase::new().await;
    plain_queue::create(&database.client().await).await;
    let mut theirs = NodeOptions::new(database.url());
    theirs.database = theirs.database.schema("Other \"schema\"");
    reveille::database::Database::connect(theirs.database.clone()).await.unwrap().migrate().await.unwrap();
    let (ours, theirs) = (Node::start(NodeOptions::new(database.url())).await, Node::start(theirs).await);
    let neighbour = Node::start(NodeOptions::new(database.url())).await;

    let taken = neighbour.take("mail");
    ours.push("mail", 1).await;
    taken.await;

    assert_eq!(theirs.database.wake_figures().received, 0);
    assert_ne!(ours.database.hint_channel(), theirs.database.hint_channel());
}
