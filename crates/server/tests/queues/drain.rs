//! A server that is told to end while it has work in hand.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::support::{House, Node, PATIENCE, ack, reply, request};

const WAIT: &str = "wait=true&timeout=25000";

#[tokio::test]
async fn a_drain_answers_whoever_waits_with_nothing_and_ends() {
    let mut house = House::new().await;
    let mut parked: Vec<_> = (0..10).map(|_| house.client().spawn(&format!("/api/v1/pop/queue/q?{WAIT}"))).collect();
    house.until_waiting(10).await;
    let begun = Instant::now();

    house.shutdown.cancel();

    for asking in &mut parked {
        asking.reply().await.assert_nothing();
    }
    house.node.ended().await;
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_drain_lets_pushes_and_acks_in_hand_finish() {
    let mut house = House::new().await;
    house.push("q", "1").await;
    let message = house.get("/api/v1/pop/queue/q").await.messages()[0].clone();
    let mut holder = house.db.client().await;
    let held = holder.transaction().await.unwrap();
    held.batch_execute("lock table reveille.partition_row, reveille.cursor in access exclusive mode").await.unwrap();
    let mut pushing = house.client().connect().await;
    let body = r#"{"items":[{"queue":"q","payload":2}]}"#;
    pushing.write_all(&request("POST", "/api/v1/push", Some(body))).await.unwrap();
    let mut acking = house.client().connect().await;
    acking.write_all(&request("POST", "/api/v1/ack", Some(&ack(&message, "completed")))).await.unwrap();
    house.until_blocked(2).await;

    house.shutdown.cancel();
    // It has stopped accepting: it is on its way out, with both of them in hand.
    let closed = async { while TcpStream::connect(house.handle.address()).await.is_ok() {} };
    timeout(PATIENCE, closed).await.expect("the door closes");
    held.rollback().await.unwrap();

    let (pushed, acked) = (reply(&mut pushing).await, reply(&mut acking).await);
    assert_eq!((pushed.status, pushed.json()[0]["status"].as_str()), (201, Some("queued")), "{}", pushed.body);
    assert_eq!(acked.json()[0]["success"], true, "{}", acked.body);
    house.node.ended().await;
    let next = Node::start(&house.db.url(), |options| options, reveille::messages::MessagesOptions::default()).await;
    assert_eq!(next.get("/api/v1/pop/queue/q?batch=9").await.data(), [json!(2)]);
}
