//! What `POST /api/v1/push` takes, refuses and answers.

use serde_json::json;

use crate::support::TestServer;

#[tokio::test]
async fn every_item_is_answered_in_its_place() {
    let server = TestServer::new().await;

    let body = r#"{"items":[
        {"queue":"mail","payload":{"n":1},"transactionId":"a"},
        {"queue":"mail","partition":"p","payload":{"n":2},"transactionId":"a"},
        {"queue":"mail","payload":{"n":3},"transactionId":"a"},
        {"queue":"other","payload":4,"traceId":"01890a5d-ac96-774b-bcce-b302099a8057"}]}"#;
    let reply = server.post("/api/v1/push", body).await;

    assert_eq!(reply.status, 201);
    let answer = reply.json();
    let statuses: Vec<_> = answer.as_array().unwrap().iter().map(|item| item["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["queued", "queued", "duplicate", "queued"]);
    assert_eq!(answer[2]["message_id"], answer[0]["message_id"], "a duplicate names the first one");
    assert_eq!((&answer[1]["index"], &answer[1]["queueName"]), (&json!(1), &json!("mail")));
    assert_ne!(answer[0]["partition_id"], answer[1]["partition_id"]);
    assert_eq!(answer[3]["transaction_id"], answer[3]["message_id"], "unnamed, it is called by its id");
    assert_eq!(answer[3]["trace_id"], "01890a5d-ac96-774b-bcce-b302099a8057");
}

#[tokio::test]
async fn nothing_to_push_is_no_fault() {
    let server = TestServer::new().await;

    let reply = server.post("/api/v1/push", r#"{"items":[]}"#).await;

    assert_eq!((reply.status, reply.body.as_str()), (201, "[]"));
}

#[tokio::test]
async fn a_body_that_cannot_be_read_is_refused_with_a_reason() {
    let server = TestServer::new().await;
    let long = "x".repeat(600);
    let cases = [
        ("", "Empty request body"),
        ("{", "Invalid JSON"),
        ("[]", ""),
        ("{}", "items array is required"),
        (r#"{"items":null}"#, "items array is required"),
        (r#"{"items":5}"#, "array"),
        (r#"{"items":[5]}"#, ""),
        (r#"{"items":[{"payload":1}]}"#, "Queue must be a string"),
        (r#"{"items":[{"queue":5}]}"#, "text"),
        (r#"{"items":[{"queue":""}]}"#, "empty"),
        (r#"{"items":[{"queue":"q","partition":7}]}"#, "text"),
        (r#"{"items":[{"queue":"q","traceId":"no"}]}"#, "UUID"),
        (r#"{"items":[{"queue":"a\u0000b"}]}"#, "NUL"),
        (r#"{"items":[{"queue":"q","transactionId":"a\u0000b"}]}"#, "NUL"),
        (&format!(r#"{{"items":[{{"queue":"{long}"}}]}}"#), "longer"),
    ];
    for (body, sentence) in cases {
        let reply = server.post("/api/v1/push", body).await;

        assert_eq!(reply.status, 400, "{body}: {}", reply.body);
        let answer = reply.json();
        assert!(answer["error"].as_str().unwrap().contains(sentence), "{body}: {answer}");
        assert!(answer["code"].is_string(), "{answer}");
    }
    assert_eq!(server.get("/api/v1/resources/queues").await.json()["queues"], json!([]), "nothing was made");
}

#[tokio::test]
async fn one_bad_item_fails_alone() {
    let server = TestServer::new().await;

    let body = r#"{"items":[{"queue":"q","payload":1},{"queue":"q","transactionId":"a\u0000b","payload":2},{"queue":"q","payload":3}]}"#;
    let reply = server.post("/api/v1/push", body).await;

    assert_eq!(reply.status, 201);
    let answer = reply.json();
    assert_eq!(
        (&answer[0]["status"], &answer[1]["status"], &answer[2]["status"]),
        (&json!("queued"), &json!("failed"), &json!("queued"))
    );
    assert!(answer[1]["error"].as_str().unwrap().contains("NUL"), "{answer}");
    let popped = server.get("/api/v1/pop/queue/q?batch=10").await;
    assert_eq!(popped.data(), [json!(1), json!(3)]);
}

#[tokio::test]
async fn payloads_come_back_byte_for_byte() {
    let server = TestServer::new().await;
    let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    let payloads = [
        "null",
        "{}",
        "0.10",
        "1e400",
        "123456789012345678901234567890",
        r#"{"b": 1,  "a":2, "a" : 3}"#,
        r#""\ud800 \u0000 é 🦆 \/""#,
        &format!("\"{}\"", "x".repeat(1_500_000)),
        &deep,
    ];
    let items = payloads.map(|payload| format!(r#"{{"queue":"raw","payload":{payload}}}"#)).join(",");

    let pushed = server
        .post("/api/v1/push", format!(r#"{{"items":[{items},{{"queue":"raw"}},{{"queue":"raw","data":[ 7 ]}}]}}"#))
        .await;
    assert_eq!(pushed.status, 201, "{}", pushed.body);
    let popped = server.get("/api/v1/pop/queue/raw?batch=100").await;

    assert_eq!(popped.status, 200);
    let mut rest = popped.body.as_str();
    for payload in payloads.iter().copied().chain(["{}", "[ 7 ]"]) {
        let carried = format!("\"data\":{payload},\"producerSub\"");
        let at = rest.find(&carried).unwrap_or_else(|| panic!("{} is missing", &payload[..payload.len().min(40)]));
        rest = &rest[at + carried.len()..];
    }
}

#[tokio::test]
async fn a_full_queue_asks_to_come_back() {
    let server = TestServer::new().await;
    server.post("/api/v1/configure", r#"{"queue":"small","options":{"maxSize":1}}"#).await;
    server.push("small", "1").await;

    let mut refused = None;
    for _ in 0..3 {
        let reply = server.post("/api/v1/push", r#"{"items":[{"queue":"small","payload":2}]}"#).await;
        if reply.status != 201 {
            refused = Some(reply);
            break;
        }
    }

    let refused = refused.expect("a queue of one message is full by now");
    assert_eq!((refused.status, refused.code().as_str()), (429, "queue_full"));
    assert!(refused.head.contains("retry-after: 1"), "{}", refused.head);
}
