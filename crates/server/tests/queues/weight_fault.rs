//! What one request may cost all other clients: unread bodies, answers that no client takes, and
//! long computations.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::support::{PATIENCE, TestServer, reply, request};

const WAIT: &str = "/api/v1/pop/queue/q?wait=true&timeout=20000";

/// A push of so many tiny messages.
fn push_of(items: usize) -> String {
    let mut body = r#"{"items":["#.to_owned();
    for index in 0..items {
        let _ = write!(body, r#"{}{{"queue":"q"}}"#, if index == 0 { "" } else { "," });
    }
    body + "]}"
}

#[tokio::test]
async fn a_body_that_a_route_does_not_read_is_refused_and_holds_nothing() {
    let server = TestServer::with(|options| options.max_in_flight(64 * 1024)).await;
    let large = format!("\"{}\"", "x".repeat(40_000));
    let mut poll = server.client().connect().await;

    poll.write_all(&request("GET", WAIT, Some(&large))).await.unwrap();

    let refused = reply(&mut poll).await;
    assert_eq!((refused.status, refused.code().as_str()), (400, "unexpected_body"), "{}", refused.body);
    server.push("other", &large).await;
    let chunked =
        "host: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\nconnection: close";
    for (chunks, status) in [("0\r\n\r\n", 204), ("2\r\n{}\r\n0\r\n\r\n", 400)] {
        let mut poll = server.client().connect().await;
        let text = format!("GET /api/v1/pop/queue/q HTTP/1.1\r\n{chunked}\r\n\r\n{chunks}");
        poll.write_all(text.as_bytes()).await.unwrap();
        assert_eq!(reply(&mut poll).await.status, status, "{chunks:?}");
    }
}

#[tokio::test]
async fn the_answer_to_a_push_is_weighed_until_it_is_taken() {
    let server = TestServer::new().await;
    let mut slow_client = server.client().connect().await;
    let weighed = async {
        while server.get("/api/v1/status").await.json()["answerBytesInFlight"].as_i64() < Some(6_000_000) {
            tokio::task::yield_now().await;
        }
    };

    slow_client.write_all(&request("POST", "/api/v1/push", Some(&push_of(60_000)))).await.unwrap();

    timeout(PATIENCE, weighed).await.expect("an answer that its client does not take is weighed");
    assert_eq!(reply(&mut slow_client).await.status, 201);
    while server.get("/api/v1/status").await.json()["answerBytesInFlight"] != 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_push_whose_answer_would_find_no_room_is_refused_before_it_is_stored() {
    let server = TestServer::with(|options| options.max_in_flight(8 * 1024 * 1024)).await;
    server.push("large", &format!("\"{}\"", "x".repeat(6_000_000))).await;
    let mut slow_client = server.client().connect().await;
    slow_client.write_all(&request("GET", "/api/v1/pop/queue/large", None)).await.unwrap();
    while server.get("/api/v1/status").await.json()["answerBytesInFlight"].as_i64() < Some(6_000_000) {
        tokio::task::yield_now().await;
    }

    let refused = server.post("/api/v1/push", push_of(20_000)).await;

    assert_eq!((refused.status, refused.code().as_str()), (429, "overloaded"));
    server.get("/api/v1/pop/queue/q").await.assert_nothing();
    assert_eq!(server.get("/livez").await.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_checks_are_answered_beside_large_requests() {
    let server = TestServer::new().await;
    server.push("q", "0").await;
    let body = push_of(100_000);
    let done = CancellationToken::new();
    let (client, stop) = (server.client(), done.clone());
    let mut probing = JoinSet::new();
    probing.spawn(async move {
        let mut longest = Duration::ZERO;
        while !stop.is_cancelled() {
            let begun = Instant::now();
            assert_eq!(client.ask("GET", "/livez", None).await.status, 200);
            longest = longest.max(begun.elapsed());
        }
        longest
    });

    let pushes = tokio::join!(server.post("/api/v1/push", &body), server.post("/api/v1/push", &body));
    done.cancel();

    assert_eq!([pushes.0.status, pushes.1.status], [201, 201]);
    let longest = probing.join_next().await.unwrap().unwrap();
    eprintln!("beside two pushes of 100,000 messages the longest answer of /livez took {longest:?}");
    assert!(longest < Duration::from_millis(800), "{longest:?}");
}
