//! Two servers of one database.

use reveille::messages::MessagesOptions;
use serde_json::json;

use crate::support::{Node, TestServer, ack};

#[tokio::test]
async fn what_one_node_takes_another_hands_out() {
    let server = TestServer::new().await;
    let other = Node::start(&server.db.url(), |options| options, MessagesOptions::default()).await;
    server.push("q", "0").await;
    server.get("/api/v1/pop/queue/q?autoAck=true").await.messages();
    let mut parked = server.client().spawn("/api/v1/pop/queue/q?wait=true&timeout=25000");
    server.until_waiting(1).await;

    other.push("q", "1").await;

    let got = parked.reply().await;
    assert_eq!(got.data(), [json!(1)]);
    let settled = other.post("/api/v1/ack", ack(&got.messages()[0], "completed")).await.json();
    assert_eq!(settled[0]["success"], true, "a node settles what another one leased: {settled}");
}

#[tokio::test]
async fn an_ack_on_one_node_frees_the_partition_for_a_pop_on_another() {
    let server = TestServer::new().await;
    let other = Node::start(&server.db.url(), |options| options, MessagesOptions::default()).await;
    server.push("q", "1").await;
    server.push("q", "2").await;
    let held = server.get("/api/v1/pop/queue/q").await.messages()[0].clone();
    let mut parked = other.client().spawn("/api/v1/pop/queue/q?wait=true&timeout=25000");
    other.until_waiting(1).await;

    server.post("/api/v1/ack", ack(&held, "completed")).await;

    assert_eq!(parked.reply().await.data(), [json!(2)]);
}
