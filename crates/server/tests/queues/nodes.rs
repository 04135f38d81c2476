//! Two servers of one database.

use reveille::messages::MessagesOptions;
use serde_json::json;

use crate::support::{House, Node, ack};

#[tokio::test]
async fn what_one_node_takes_another_hands_out() {
    let house = House::new().await;
    let other = Node::start(&house.db.url(), |options| options, MessagesOptions::default()).await;
    house.push("q", "0").await;
    house.get("/api/v1/pop/queue/q?autoAck=true").await.messages();
    let mut parked = house.client().spawn("/api/v1/pop/queue/q?wait=true&timeout=25000");
    house.until_waiting(1).await;

    other.push("q", "1").await;

    let got = parked.reply().await;
    assert_eq!(got.data(), [json!(1)]);
    let settled = other.post("/api/v1/ack", ack(&got.messages()[0], "completed")).await.json();
    assert_eq!(settled[0]["success"], true, "a node settles what another one leased: {settled}");
}

#[tokio::test]
async fn an_ack_on_one_node_frees_the_partition_for_who_waits_on_another() {
    let house = House::new().await;
    let other = Node::start(&house.db.url(), |options| options, MessagesOptions::default()).await;
    house.push("q", "1").await;
    house.push("q", "2").await;
    let held = house.get("/api/v1/pop/queue/q").await.messages()[0].clone();
    let mut parked = other.client().spawn("/api/v1/pop/queue/q?wait=true&timeout=25000");
    other.until_waiting(1).await;

    house.post("/api/v1/ack", ack(&held, "completed")).await;

    assert_eq!(parked.reply().await.data(), [json!(2)]);
}
