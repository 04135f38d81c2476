//! The limits on one client.

use std::time::{Duration, Instant};

use reveille_testkit::TestDatabase;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::interval;

use crate::support::{Reply, Running, rest_of};

const SHORT: Duration = Duration::from_millis(300);

#[tokio::test]
async fn a_client_that_sends_nothing_is_cut_off() {
    let db = TestDatabase::new().await;
    let server = Running::start(&db.url(), |options| options.head_timeout(SHORT)).await;
    let begun = Instant::now();

    let mut stream = server.connect().await;

    assert_eq!(rest_of(&mut stream).await, "");
    assert!(begun.elapsed() >= SHORT);
}

#[tokio::test]
async fn a_request_head_that_arrives_too_slowly_is_cut_off() {
    let db = TestDatabase::new().await;
    let server = Running::start(&db.url(), |options| options.head_timeout(SHORT)).await;
    let mut stream = server.connect().await;
    stream.write_all(b"GET /livez HTTP/1.1\r\n").await.unwrap();
    let mut every = interval(Duration::from_millis(20));
    let begun = Instant::now();

    let mut byte = [0];
    let ended = loop {
        tokio::select! {
            read = stream.read(&mut byte) => break read,
            _ = every.tick() => drop(stream.write_all(b"x: y\r\n").await),
        }
    };

    assert_eq!(ended.unwrap_or(0), 0, "closed without an answer");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_connection_is_kept_between_requests_and_then_closed() {
    let db = TestDatabase::new().await;
    let server = Running::start(&db.url(), |options| options.head_timeout(Duration::from_secs(2))).await;
    let mut stream = server.connect().await;
    for _ in 0..2 {
        stream.write_all(b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        let mut reply = Vec::new();
        while !reply.ends_with(b"{\"status\":\"alive\"}") {
            reply.push(stream.read_u8().await.unwrap());
        }
    }

    assert_eq!(rest_of(&mut stream).await, "");
}

#[tokio::test]
async fn an_endless_request_head_is_refused() {
    let db = TestDatabase::new().await;
    let server = Running::start(&db.url(), |options| options).await;
    let mut stream = server.connect().await;
    let head = format!("GET /livez HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(200_000));

    // The server may hang up before it has read all of it.
    let _ = stream.write_all(head.as_bytes()).await;

    let answer = rest_of(&mut stream).await;
    assert!(answer.is_empty() || Reply::parse(&answer).status == 431, "{answer}");
}

#[tokio::test]
async fn a_body_that_announces_too_much_is_refused_at_once() {
    let db = TestDatabase::new().await;
    let server = Running::start(&db.url(), |options| options.max_body(1000)).await;
    let mut stream = server.connect().await;

    stream
        .write_all(b"POST /livez HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 1001\r\n\r\n")
        .await
        .unwrap();

    let reply = Reply::parse(&rest_of(&mut stream).await);
    assert_eq!((reply.status, reply.json()["code"].as_str()), (413, Some("body_too_large")));
}

#[tokio::test]
async fn a_body_that_grows_beyond_the_limit_is_refused() {
    let db = TestDatabase::new().await;
    let server = Running::start(&db.url(), |options| options.max_body(1000)).await;
    let mut stream = server.connect().await;
    stream.write_all(b"POST /livez HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n").await.unwrap();

    let chunk = format!("3e8\r\n{}\r\n", "x".repeat(1000));
    let _ = stream.write_all(chunk.repeat(2).as_bytes()).await;

    let reply = Reply::parse(&rest_of(&mut stream).await);
    assert_eq!((reply.status, reply.json()["code"].as_str()), (413, Some("body_too_large")));
}

#[tokio::test]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let db = TestDatabase::new().await;
    let server = Running::start(&db.url(), |options| options.body_timeout(SHORT)).await;
    let mut stream = server.connect().await;

    stream
        .write_all(
            b"POST /livez HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 10\r\n\r\nabc",
        )
        .await
        .unwrap();

    let reply = Reply::parse(&rest_of(&mut stream).await);
    assert_eq!((reply.status, reply.json()["code"].as_str()), (408, Some("body_too_slow")));
}

#[tokio::test]
async fn one_client_too_many_is_refused_with_retry_after() {
    let db = TestDatabase::new().await;
    let server = Running::start(&db.url(), |options| options.max_connections(2)).await;
    let mut first = server.connect().await;
    let _second = server.connect().await;

    let mut third = server.connect().await;
    let refused = Reply::parse(&rest_of(&mut third).await);

    assert_eq!((refused.status, refused.json()["code"].as_str()), (503, Some("too_many_connections")));
    assert!(refused.head.contains("retry-after: 1"), "{}", refused.head);
    first.write_all(b"GET /livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
    assert_eq!(Reply::parse(&rest_of(&mut first).await).status, 200);
}

#[tokio::test]
async fn a_client_that_never_reads_its_answers_is_cut_off() {
    let db = TestDatabase::new().await;
    let server = Running::start(&db.url(), |options| options.write_timeout(SHORT)).await;
    let mut stream = server.connect().await;
    let request = b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n".repeat(100);

    let deadline = Instant::now() + crate::support::PATIENCE;
    // Until the buffers of both sides are full and the server closes the connection.
    while stream.write_all(&request).await.is_ok() {
        assert!(Instant::now() < deadline, "still served");
    }

    assert_eq!(server.get("/livez").await.status, 200);
}

/// Python's `http.client` and others send all of a body before they read a byte of the answer.
#[tokio::test]
async fn a_client_that_sends_everything_first_sees_why_it_is_refused() {
    let db = TestDatabase::new().await;
    let server = Running::start(&db.url(), |options| options.max_body(1_000_000)).await;
    for announce in ["content-length: 16000000", "transfer-encoding: chunked"] {
        let mut stream = server.connect().await;
        let head = format!(
            "POST /api/v1/push HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{announce}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let piece =
            if announce.contains("chunked") { format!("3e8\r\n{}\r\n", "x".repeat(1000)) } else { "x".repeat(1000) };

        for _ in 0..16_000 {
            stream.write_all(piece.as_bytes()).await.expect("the server takes what it is sent");
        }

        let reply = Reply::parse(&rest_of(&mut stream).await);
        assert_eq!((reply.status, reply.json()["code"].as_str()), (413, Some("body_too_large")), "{announce}");
    }
}

/// A client that keeps a connection after a refusal must not find it open and without answers.
#[tokio::test]
async fn a_connection_on_which_something_was_refused_ends_like_any_other() {
    let db = TestDatabase::new().await;
    let server = Running::start(&db.url(), |options| options.head_timeout(SHORT)).await;
    let mut stream = server.connect().await;
    let refused =
        "POST /api/v1/push HTTP/1.1\r\nhost: localhost\r\ncontent-type: text/plain\r\ncontent-length: 2\r\n\r\n{}";
    let begun = Instant::now();

    stream.write_all(refused.as_bytes()).await.unwrap();
    let reply = Reply::parse(&rest_of(&mut stream).await);

    assert_eq!(reply.status, 415);
    assert!(begun.elapsed() < Duration::from_secs(10), "it was open for {:?}", begun.elapsed());
}
