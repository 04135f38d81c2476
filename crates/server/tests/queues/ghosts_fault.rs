//! Clients that left bytes behind their request, and clients that closed their sending side but
//! still read.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::support::{PATIENCE, Reply, TestServer, reply, request};

const WAIT: &str = "/api/v1/pop/queue/q?wait=true&timeout=60000";
/// How long a connection may outlive its client here, beside other tests. The promise is 100 ms.
const OUTLIVED_MAX: Duration = Duration::from_secs(5);

/// A waiting pop, with some bytes behind its request.
async fn poll_and_more(server: &TestServer, path: &str, behind: &[u8]) -> TcpStream {
    let mut stream = server.client().connect().await;
    let head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    stream.write_all(&[head.as_bytes(), behind].concat()).await.expect("the server takes a request");
    stream
}

/// Waits until no client is connected.
async fn until_empty(server: &TestServer) {
    let all_left = async {
        while server.handle.connections() > 0 {
            tokio::task::yield_now().await;
        }
    };
    let left = timeout(PATIENCE, all_left).await;
    assert!(left.is_ok(), "{} are still connected", server.handle.connections());
}

#[tokio::test]
async fn clients_that_left_bytes_behind_leave_their_places_free() {
    let server = TestServer::with(|options| options.max_connections(50).max_waiters(45)).await;
    for round in 0..2 {
        let mut ghosts = Vec::new();
        for _ in 0..30 {
            ghosts.push(poll_and_more(&server, WAIT, b"G").await);
        }
        server.until_waiting(30).await;

        drop(ghosts);
        let left = Instant::now();
        server.until_waiting(0).await;
        until_empty(&server).await;

        let outlived = left.elapsed();
        eprintln!("round {round}: the last place outlived its client by {outlived:?}");
        assert!(outlived < OUTLIVED_MAX, "the last place outlived its client by {outlived:?}");
    }
    let mut parked = server.client().spawn(WAIT);
    server.until_waiting(1).await;
    server.push("q", "1").await;
    assert_eq!(parked.reply().await.data(), [json!(1)]);
}

#[tokio::test]
async fn a_message_is_not_buried_by_clients_that_are_gone() {
    let server = TestServer::new().await;
    server.post("/api/v1/configure", r#"{"queue":"q","options":{"leaseTime":1,"maxDeliveries":3}}"#).await;
    let mut ghosts = Vec::new();
    for _ in 0..5 {
        ghosts.push(poll_and_more(&server, WAIT, b"GET /livez HTTP/1.1\r\n").await);
    }
    server.until_waiting(5).await;
    drop(ghosts);
    server.until_waiting(0).await;

    server.push("q", "1").await;

    let popped = server.get(WAIT).await;
    assert_eq!((popped.data(), &popped.messages()[0]["deliveryAttempt"]), (vec![json!(1)], &json!(1)));
}

#[tokio::test]
async fn auto_ack_loses_nothing_to_clients_that_are_gone() {
    let server = TestServer::new().await;
    let path = format!("{WAIT}&autoAck=true");
    let ghost = poll_and_more(&server, &path, b"\r\n").await;
    server.until_waiting(1).await;
    drop(ghost);
    server.until_waiting(0).await;

    server.push("q", "1").await;

    assert_eq!(server.get(&path).await.data(), [json!(1)]);
}

/// A client's end lies behind its bytes, so the pop of a client that sends more than is kept ends.
#[tokio::test]
async fn bytes_without_end_behind_a_poll_end_the_poll() {
    let server = TestServer::new().await;
    let mut flood = poll_and_more(&server, WAIT, b"").await;
    server.until_waiting(1).await;

    let megabyte = vec![b'x'; 1 << 20];
    let _ = flood.write_all(&megabyte).await;

    server.until_waiting(0).await;
    let answer = reply(&mut flood).await;
    assert_eq!((answer.status, answer.code().as_str()), (400, "client_left"));
}

#[tokio::test]
async fn a_poll_whose_client_sends_no_more_is_given_up() {
    let server = TestServer::new().await;
    let mut half = poll_and_more(&server, WAIT, b"").await;
    server.until_waiting(1).await;

    half.shutdown().await.unwrap();

    server.until_waiting(0).await;
    let answer = reply(&mut half).await;
    assert_eq!((answer.status, answer.code().as_str()), (400, "client_left"));
    server.push("q", "1").await;
    assert_eq!(server.get(WAIT).await.messages()[0]["deliveryAttempt"], 1);
}

#[tokio::test]
async fn a_push_whose_client_sends_no_more_is_answered() {
    let server = TestServer::new().await;
    server.push("q", "1").await;
    let mut holder = server.db.client().await;
    let held = holder.transaction().await.unwrap();
    held.batch_execute("lock table reveille.partition_row in access exclusive mode").await.unwrap();
    let mut half = server.client().connect().await;
    half.write_all(&request("POST", "/api/v1/push", Some(r#"{"items":[{"queue":"q","payload":2}]}"#))).await.unwrap();
    server.until_blocked(1).await;

    half.shutdown().await.unwrap();
    // What the server answers after the end of the client's stream comes after this.
    assert_eq!(server.get("/livez").await.status, 200);
    held.rollback().await.unwrap();

    assert_eq!(reply(&mut half).await.status, 201);
}

#[tokio::test]
async fn requests_in_one_piece_are_answered_in_their_order() {
    let server = TestServer::new().await;
    server.push("q", "1").await;
    let mut stream = server.client().connect().await;
    let first = b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n".to_vec();

    stream.write_all(&[first, request("GET", "/api/v1/pop/queue/q", None)].concat()).await.unwrap();

    let (first, second) = two_replies(&mut stream).await;
    assert_eq!(first.body, r#"{"status":"alive"}"#);
    assert_eq!(second.data(), [json!(1)]);
}

#[tokio::test]
async fn a_request_behind_a_poll_is_answered_after_it() {
    let server = TestServer::new().await;
    let behind = request("GET", "/livez", None);
    let mut stream = poll_and_more(&server, WAIT, &behind[..9]).await;
    server.until_waiting(1).await;
    stream.write_all(&behind[9..]).await.unwrap();
    assert_eq!(server.get("/livez").await.status, 200);

    server.push("q", "1").await;

    let (first, second) = two_replies(&mut stream).await;
    assert_eq!(first.data(), [json!(1)]);
    assert_eq!(second.body, r#"{"status":"alive"}"#);
}

/// Two answers on one connection.
async fn two_replies(stream: &mut TcpStream) -> (Reply, Reply) {
    let mut bytes = Vec::new();
    timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.expect("in time").expect("it is closed well");
    let text = String::from_utf8(bytes).expect("the server speaks UTF-8");
    let (first, rest) = text.split_at(text.rfind("HTTP/1.1 ").expect("an answer"));
    (Reply::parse(first), Reply::parse(rest))
}
