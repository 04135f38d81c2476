//! The shutdown of a server with running requests.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::support::{Node, PATIENCE, TestServer, ack, reply, request};

const WAIT: &str = "wait=true&timeout=25000";

#[tokio::test]
async fn a_drain_answers_waiting_pops_with_nothing_and_ends() {
    let mut server = TestServer::new().await;
    let mut parked: Vec<_> = (0..10).map(|_| server.client().spawn(&format!("/api/v1/pop/queue/q?{WAIT}"))).collect();
    server.until_waiting(10).await;
    let begun = Instant::now();

    server.shutdown.cancel();

    for pending in &mut parked {
        pending.reply().await.assert_nothing();
    }
    server.node.ended().await;
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_drain_lets_running_pushes_and_acks_finish() {
    let mut server = TestServer::new().await;
    server.push("q", "1").await;
    let message = server.get("/api/v1/pop/queue/q").await.messages()[0].clone();
    let mut holder = server.db.client().await;
    let held = holder.transaction().await.unwrap();
    held.batch_execute("lock table reveille.partition_row, reveille.cursor in access exclusive mode").await.unwrap();
    let mut pushing = server.client().connect().await;
    let body = r#"{"items":[{"queue":"q","payload":2}]}"#;
    pushing.write_all(&request("POST", "/api/v1/push", Some(body))).await.unwrap();
    let mut acking = server.client().connect().await;
    acking.write_all(&request("POST", "/api/v1/ack", Some(&ack(&message, "completed")))).await.unwrap();
    server.until_blocked(2).await;

    server.shutdown.cancel();
    // When it no longer accepts, the drain has begun while both requests still run.
    let closed = async { while TcpStream::connect(server.handle.address()).await.is_ok() {} };
    timeout(PATIENCE, closed).await.expect("the server stops accepting");
    held.rollback().await.unwrap();

    let (pushed, acked) = (reply(&mut pushing).await, reply(&mut acking).await);
    assert_eq!((pushed.status, pushed.json()[0]["status"].as_str()), (201, Some("queued")), "{}", pushed.body);
    assert_eq!(acked.json()[0]["success"], true, "{}", acked.body);
    server.node.ended().await;
    let next = Node::start(&server.db.url(), |options| options, reveille::messages::MessagesOptions::default()).await;
    assert_eq!(next.get("/api/v1/pop/queue/q?batch=9").await.data(), [json!(2)]);
}
