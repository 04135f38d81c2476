//! The limits of the routes of queues.

use std::time::{Duration, Instant};

use reveille::messages::MessagesOptions;
use reveille_testkit::TestDatabase;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use crate::support::{Node, TestServer, ack, reply, request};

#[tokio::test]
async fn one_waiting_pop_too_many_is_refused_with_retry_after() {
    let server = TestServer::with(|options| options.max_waiters(2)).await;
    let wait = "/api/v1/pop/queue/q?wait=true&timeout=25000";
    let mut parked = [server.client().spawn(wait), server.client().spawn(wait)];
    server.until_waiting(2).await;

    let refused = server.get(wait).await;

    assert_eq!((refused.status, refused.code().as_str()), (429, "overloaded"));
    assert!(refused.head.contains("retry-after: 1"), "{}", refused.head);
    server.push("q", "1").await;
    server.post("/api/v1/push", r#"{"items":[{"queue":"q","partition":"p","payload":2}]}"#).await;
    for pending in &mut parked {
        assert_eq!(pending.reply().await.messages().len(), 1);
    }
    server.until_waiting(0).await;
    assert_eq!(server.get(wait.replace("25000", "1").as_str()).await.status, 204, "there is room again");
}

#[tokio::test]
async fn long_polls_leave_room_for_other_requests() {
    let server = TestServer::with(|options| options.max_connections(20).max_waiters(20)).await;
    server.push("q", "1").await;
    let message = server.get("/api/v1/pop/queue/q").await.messages()[0].clone();
    let wait = "/api/v1/pop/queue/nothing?wait=true&timeout=25000";
    let _parked: Vec<_> = (0..18).map(|_| server.client().spawn(wait)).collect();
    server.until_waiting(18).await;

    let mut one_more = server.client().spawn(wait);
    let refused = one_more.reply().await;

    assert_eq!((refused.status, refused.code().as_str()), (429, "overloaded"));
    assert!(refused.head.contains("retry-after: 1"), "{}", refused.head);
    server.push("q", "2").await;
    let acked = server.post("/api/v1/ack", ack(&message, "completed")).await;
    assert_eq!((acked.status, &acked.json()[0]["success"]), (200, &json!(true)), "{}", acked.body);
    assert_eq!(server.get("/livez").await.status, 200);
    assert_eq!(server.get("/api/v1/status").await.json()["registry"]["limit"], 18);
}

#[tokio::test]
async fn bodies_share_a_budget_and_give_it_back() {
    let server = TestServer::with(|options| options.max_in_flight(64 * 1024)).await;
    let body = format!(r#"{{"items":[{{"queue":"q","payload":"{}"}}]}}"#, "x".repeat(50_000));
    let whole = request("POST", "/api/v1/push", Some(&body));
    let mut slow_client = server.client().connect().await;
    slow_client.write_all(&whole[..whole.len() - 1]).await.unwrap();

    // If the server reads the second body before it has read all of the first, the second is
    // accepted.
    let mut refused = None;
    for _ in 0..200 {
        let second = server.post("/api/v1/push", &body).await;
        if second.status == 429 {
            refused = Some(second);
            break;
        }
        assert_eq!(second.status, 201, "{}", second.body);
    }

    assert_eq!(refused.expect("two bodies are more than the budget").code(), "overloaded");
    slow_client.write_all(&whole[whole.len() - 1..]).await.unwrap();
    assert_eq!(reply(&mut slow_client).await.status, 201);
    assert_eq!(server.post("/api/v1/push", &body).await.status, 201);
}

#[tokio::test]
async fn an_answer_that_finds_no_room_gives_its_messages_back_uncharged() {
    let server = TestServer::with(|options| options.max_in_flight(8 * 1024 * 1024)).await;
    let large = format!("\"{}\"", "x".repeat(6_000_000));
    server.push("a", &large).await;
    server.push("b", &large).await;
    // The first answer is larger than the socket buffers of both sides, and its client does not
    // read.
    let mut slow_client = server.client().connect().await;
    slow_client.write_all(&request("GET", "/api/v1/pop/queue/a", None)).await.unwrap();
    while server.get("/api/v1/status").await.json()["answerBytesInFlight"].as_i64() < Some(6_000_000) {
        tokio::task::yield_now().await;
    }

    let refused = server.get("/api/v1/pop/queue/b").await;

    assert_eq!((refused.status, refused.code().as_str()), (429, "overloaded"));
    assert_eq!(reply(&mut slow_client).await.messages().len(), 1);
    let second = server.get("/api/v1/pop/queue/b?wait=true&timeout=20000").await;
    assert_eq!(second.messages()[0]["deliveryAttempt"], 1);
}

/// Makes dead letters of six megabytes each.
async fn bury(server: &TestServer, letters: usize) {
    let large = format!("\"{}\"", "x".repeat(6_000_000));
    for _ in 0..letters {
        server.push("graves", &large).await;
        let message = server.get("/api/v1/pop/queue/graves").await.messages()[0].clone();
        assert_eq!(server.post("/api/v1/ack", ack(&message, "dlq")).await.json()[0]["dlq"], true);
    }
}

#[tokio::test]
async fn a_page_of_large_dead_letters_ends_early_and_says_where_to_go_on() {
    let server = TestServer::new().await;
    bury(&server, 3).await;

    let first = server.get("/api/v1/dlq").await.json();
    let second = server.get("/api/v1/dlq?offset=2").await.json();

    let letters = |page: &Value| page["messages"].as_array().unwrap().len();
    assert_eq!([letters(&first), letters(&second)], [2, 1]);
    assert_eq!(first["pagination"], json!({"limit": 2, "offset": 0, "total": 3, "hasMore": true}));
    assert_eq!(second["pagination"], json!({"limit": 100, "offset": 2, "total": 3, "hasMore": false}));
}

#[tokio::test]
async fn a_page_that_finds_no_room_is_refused() {
    let server = TestServer::with(|options| options.max_in_flight(8 * 1024 * 1024)).await;
    bury(&server, 1).await;
    server.push("a", &format!("\"{}\"", "x".repeat(6_000_000))).await;
    let mut slow_client = server.client().connect().await;
    slow_client.write_all(&request("GET", "/api/v1/pop/queue/a", None)).await.unwrap();
    while server.get("/api/v1/status").await.json()["answerBytesInFlight"].as_i64() < Some(6_000_000) {
        tokio::task::yield_now().await;
    }

    let refused = server.get("/api/v1/dlq").await;

    assert_eq!((refused.status, refused.code().as_str()), (429, "overloaded"));
    assert_eq!(reply(&mut slow_client).await.messages().len(), 1);
    assert_eq!(server.get("/api/v1/dlq").await.json()["total"], 1);
}

#[tokio::test]
async fn a_request_that_takes_too_long_is_answered_and_works_afterwards() {
    let server = TestServer::with(|options| options.request_timeout(Duration::from_millis(500))).await;
    server.push("q", "1").await;
    let mut holder = server.db.client().await;
    let held = holder.transaction().await.unwrap();
    held.batch_execute("lock table reveille.partition_row in access exclusive mode").await.unwrap();

    let pushed = server.post("/api/v1/push", r#"{"items":[{"queue":"q","payload":2,"transactionId":"t"}]}"#).await;
    let popped = server.get("/api/v1/pop/queue/q").await;

    assert_eq!((pushed.status, pushed.code().as_str()), (503, "timeout"));
    assert!(pushed.head.contains("retry-after: 1"), "{}", pushed.head);
    assert_eq!((popped.status, popped.code().as_str()), (503, "database_unavailable"));
    held.rollback().await.unwrap();
    // Whether the first push was stored is unknown, and pushing again with the same id is safe.
    let again = server.post("/api/v1/push", r#"{"items":[{"queue":"q","payload":2,"transactionId":"t"}]}"#).await;
    assert_eq!(again.status, 201, "{}", again.body);
    let data = server.get("/api/v1/pop/queue/q?batch=9&wait=true&timeout=20000").await.data();
    assert_eq!(data, [json!(1), json!(2)]);
}

#[tokio::test]
async fn a_poll_may_wait_longer_than_other_requests_may_take() {
    let server = TestServer::with(|options| options.request_timeout(Duration::from_secs(1))).await;
    server.push("q", "1").await;
    server.get("/api/v1/pop/queue/q?autoAck=true").await;
    let begun = Instant::now();

    let nothing = server.get("/api/v1/pop/queue/q?wait=true&timeout=2000").await;

    nothing.assert_nothing();
    assert!(begun.elapsed() >= Duration::from_secs(2), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_body_is_counted_until_its_request_is_answered() {
    let server = TestServer::with(|options| options.max_in_flight(64 * 1024)).await;
    server.push("q", "1").await;
    let mut holder = server.db.client().await;
    let held = holder.transaction().await.unwrap();
    held.batch_execute("lock table reveille.partition_row in access exclusive mode").await.unwrap();
    let item = |id: &str| {
        let payload = "x".repeat(40_000);
        format!(r#"{{"items":[{{"queue":"q","transactionId":"{id}","payload":"{payload}"}}]}}"#)
    };
    let mut waiting = server.client().connect().await;
    waiting.write_all(&request("POST", "/api/v1/push", Some(&item("a")))).await.unwrap();
    server.until_blocked(1).await;

    let refused = server.post("/api/v1/push", item("b")).await;

    assert_eq!((refused.status, refused.code().as_str()), (429, "overloaded"));
    held.rollback().await.unwrap();
    assert_eq!(reply(&mut waiting).await.status, 201);
    assert_eq!(server.post("/api/v1/push", item("b")).await.status, 201);
}

#[tokio::test]
async fn a_payload_beyond_the_limit_is_refused_and_the_others_are_stored() {
    let db = TestDatabase::new().await;
    let node = Node::start(&db.url(), |options| options, MessagesOptions::default().payload_bytes_max(10)).await;

    let both = node
        .post("/api/v1/push", r#"{"items":[{"queue":"q","payload":"12345678901"},{"queue":"q","payload":1}]}"#)
        .await;
    let alone = node.post("/api/v1/push", r#"{"items":[{"queue":"q","payload":"12345678901"}]}"#).await;

    let answer = both.json();
    assert_eq!(
        (both.status, &answer[0]["code"], &answer[1]["status"]),
        (201, &json!("payload_too_large"), &json!("queued"))
    );
    assert_eq!((alone.status, alone.code().as_str()), (413, "payload_too_large"));
}

#[tokio::test]
async fn an_encrypted_queue_without_a_key_refuses_and_with_one_gives_back_what_it_got() {
    let server = TestServer::new().await;
    server.post("/api/v1/configure", r#"{"queue":"safe","options":{"encryptionEnabled":true}}"#).await;

    let refused = server.post("/api/v1/push", r#"{"items":[{"queue":"safe","payload":{"secret":1}}]}"#).await;
    let options = MessagesOptions::default().encryption_key(1, [7; 32]);
    let keyed = Node::start(&server.db.url(), |options| options, options).await;
    keyed.push("safe", r#"{"secret":1}"#).await;

    assert_eq!((refused.status, refused.code().as_str()), (409, "no_encryption_key"));
    assert_eq!(keyed.get("/api/v1/pop/queue/safe").await.data(), [json!({"secret": 1})]);
}
