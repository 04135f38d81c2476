//! Clients that left more bytes behind than their request, and clients that send no more but still
//! read.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::support::{House, PATIENCE, Reply, reply, request};

const WAIT: &str = "/api/v1/pop/queue/q?wait=true&timeout=60000";
/// How long a place may outlive its client here, where much else runs. The promise is 100 ms.
const OUTLIVED_MAX: Duration = Duration::from_secs(5);

/// A poll that waits, with some bytes behind it.
async fn poll_and_more(house: &House, path: &str, behind: &[u8]) -> TcpStream {
    let mut stream = house.client().connect().await;
    let head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    stream.write_all(&[head.as_bytes(), behind].concat()).await.expect("the server takes a request");
    stream
}

/// Waits until nobody is connected.
async fn until_empty(house: &House) {
    let all_left = async {
        while house.handle.connections() > 0 {
            tokio::task::yield_now().await;
        }
    };
    let left = timeout(PATIENCE, all_left).await;
    assert!(left.is_ok(), "{} are still connected", house.handle.connections());
}

#[tokio::test]
async fn clients_that_left_bytes_behind_leave_their_places_free() {
    let house = House::with(|options| options.max_connections(50).max_waiters(45)).await;
    for round in 0..2 {
        let mut ghosts = Vec::new();
        for _ in 0..30 {
            ghosts.push(poll_and_more(&house, WAIT, b"G").await);
        }
        house.until_waiting(30).await;

        drop(ghosts);
        let left = Instant::now();
        house.until_waiting(0).await;
        until_empty(&house).await;

        let outlived = left.elapsed();
        eprintln!("round {round}: the last place outlived its client by {outlived:?}");
        assert!(outlived < OUTLIVED_MAX, "the last place outlived its client by {outlived:?}");
    }
    let mut parked = house.client().spawn(WAIT);
    house.until_waiting(1).await;
    house.push("q", "1").await;
    assert_eq!(parked.reply().await.data(), [json!(1)]);
}

#[tokio::test]
async fn a_message_is_not_buried_by_clients_that_are_gone() {
    let house = House::new().await;
    house.post("/api/v1/configure", r#"{"queue":"q","options":{"leaseTime":1,"maxDeliveries":3}}"#).await;
    let mut ghosts = Vec::new();
    for _ in 0..5 {
        ghosts.push(poll_and_more(&house, WAIT, b"GET /livez HTTP/1.1\r\n").await);
    }
    house.until_waiting(5).await;
    drop(ghosts);
    house.until_waiting(0).await;

    house.push("q", "1").await;

    let popped = house.get(WAIT).await;
    assert_eq!((popped.data(), &popped.messages()[0]["deliveryAttempt"]), (vec![json!(1)], &json!(1)));
}

#[tokio::test]
async fn auto_ack_loses_nothing_to_clients_that_are_gone() {
    let house = House::new().await;
    let path = format!("{WAIT}&autoAck=true");
    let ghost = poll_and_more(&house, &path, b"\r\n").await;
    house.until_waiting(1).await;
    drop(ghost);
    house.until_waiting(0).await;

    house.push("q", "1").await;

    assert_eq!(house.get(&path).await.data(), [json!(1)]);
}

/// A client's end lies behind its bytes: whoever sends more than is kept for it is not waited for.
#[tokio::test]
async fn bytes_without_end_behind_a_poll_end_the_poll() {
    let house = House::new().await;
    let mut flood = poll_and_more(&house, WAIT, b"").await;
    house.until_waiting(1).await;

    let megabyte = vec![b'x'; 1 << 20];
    let _ = flood.write_all(&megabyte).await;

    house.until_waiting(0).await;
    let said = reply(&mut flood).await;
    assert_eq!((said.status, said.code().as_str()), (400, "client_left"));
}

#[tokio::test]
async fn a_poll_whose_client_sends_no_more_is_given_up() {
    let house = House::new().await;
    let mut half = poll_and_more(&house, WAIT, b"").await;
    house.until_waiting(1).await;

    half.shutdown().await.unwrap();

    house.until_waiting(0).await;
    let said = reply(&mut half).await;
    assert_eq!((said.status, said.code().as_str()), (400, "client_left"));
    house.push("q", "1").await;
    assert_eq!(house.get(WAIT).await.messages()[0]["deliveryAttempt"], 1);
}

#[tokio::test]
async fn a_push_whose_client_sends_no_more_is_answered() {
    let house = House::new().await;
    house.push("q", "1").await;
    let mut holder = house.db.client().await;
    let held = holder.transaction().await.unwrap();
    held.batch_execute("lock table reveille.partition_row in access exclusive mode").await.unwrap();
    let mut half = house.client().connect().await;
    half.write_all(&request("POST", "/api/v1/push", Some(r#"{"items":[{"queue":"q","payload":2}]}"#))).await.unwrap();
    house.until_blocked(1).await;

    half.shutdown().await.unwrap();
    // What the server answers after the end of the client's stream comes after this.
    assert_eq!(house.get("/livez").await.status, 200);
    held.rollback().await.unwrap();

    assert_eq!(reply(&mut half).await.status, 201);
}

#[tokio::test]
async fn requests_in_one_piece_are_answered_in_their_order() {
    let house = House::new().await;
    house.push("q", "1").await;
    let mut stream = house.client().connect().await;
    let first = b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n".to_vec();

    stream.write_all(&[first, request("GET", "/api/v1/pop/queue/q", None)].concat()).await.unwrap();

    let (first, second) = two_replies(&mut stream).await;
    assert_eq!(first.body, r#"{"status":"alive"}"#);
    assert_eq!(second.data(), [json!(1)]);
}

#[tokio::test]
async fn a_request_behind_a_poll_is_answered_after_it() {
    let house = House::new().await;
    let behind = request("GET", "/livez", None);
    let mut stream = poll_and_more(&house, WAIT, &behind[..9]).await;
    house.until_waiting(1).await;
    stream.write_all(&behind[9..]).await.unwrap();
    assert_eq!(house.get("/livez").await.status, 200);

    house.push("q", "1").await;

    let (first, second) = two_replies(&mut stream).await;
    assert_eq!(first.data(), [json!(1)]);
    assert_eq!(second.body, r#"{"status":"alive"}"#);
}

/// Two answers on one connection, the first of which says how long it is.
async fn two_replies(stream: &mut TcpStream) -> (Reply, Reply) {
    let mut bytes = Vec::new();
    timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.expect("in time").expect("it is closed well");
    let text = String::from_utf8(bytes).expect("the server speaks UTF-8");
    let (first, rest) = text.split_at(text.rfind("HTTP/1.1 ").expect("an answer"));
    (Reply::parse(first), Reply::parse(rest))
}
