//! Acks, one and many, and leases.

use reveille::messages::MessagesOptions;
use serde_json::{Value, json};

use crate::support::{Node, TestServer, ack};

async fn popped(server: &TestServer, count: usize) -> Vec<Value> {
    for n in 0..count {
        server.push("q", &n.to_string()).await;
    }
    server.get(&format!("/api/v1/pop/queue/q?batch={count}")).await.messages()
}

#[tokio::test]
async fn an_ack_is_answered_as_an_array_of_one_and_a_repeat_is_harmless() {
    let server = TestServer::new().await;
    let messages = popped(&server, 1).await;

    let first = server.post("/api/v1/ack", ack(&messages[0], "completed")).await;
    let second = server.post("/api/v1/ack", ack(&messages[0], "completed")).await;

    let answer = &first.json()[0];
    assert_eq!((first.status, &answer["success"], &answer["error"]), (200, &json!(true), &json!(null)));
    assert_eq!(
        (&answer["leaseReleased"], &answer["dlq"], &answer["transactionId"]),
        (&json!(true), &json!(false), &messages[0]["transactionId"])
    );
    let again = &second.json()[0];
    assert_eq!((&again["success"], &again["noop"]), (&json!(true), &json!(true)));
}

#[tokio::test]
async fn the_answer_to_an_ack_names_queue_and_partition_on_any_node() {
    let server = TestServer::new().await;
    let body = r#"{"items":[{"queue":"a","partition":"p 1","payload":1},{"queue":"b","payload":2}]}"#;
    server.post("/api/v1/push", body).await;
    let [a, b] = ["a", "b"].map(|queue| format!("/api/v1/pop/queue/{queue}"));
    let (a, b) = (server.get(&a).await.messages()[0].clone(), server.get(&b).await.messages()[0].clone());
    let other = Node::start(&server.db.url(), |options| options, MessagesOptions::default()).await;
    let stranger = r#"{"transactionId":"x","partitionId":"00000000-0000-4000-8000-000000000000"}"#;

    let items = [ack(&a, "completed"), stranger.to_owned(), ack(&b, "failed")].join(",");
    let answer = other.post("/api/v1/ack/batch", format!(r#"{{"acknowledgments":[{items}]}}"#)).await.json();

    let places = [0, 1, 2].map(|n| (answer[n]["queueName"].clone(), answer[n]["partitionName"].clone()));
    assert_eq!(places, [(json!("a"), json!("p 1")), (json!(null), json!(null)), (json!("b"), json!("Default"))]);
    let repeat = server.post("/api/v1/ack", ack(&a, "completed")).await.json();
    assert_eq!((&repeat[0]["noop"], &repeat[0]["queueName"]), (&json!(true), &json!("a")));
}

#[tokio::test]
async fn the_first_failure_of_a_batch_stops_what_is_behind_it() {
    let server = TestServer::new().await;
    let messages = popped(&server, 3).await;
    let items = [ack(&messages[0], "completed"), ack(&messages[1], "failed"), ack(&messages[2], "completed")].join(",");

    let reply =
        server.post("/api/v1/ack/batch", format!(r#"{{"acknowledgments":[{items}],"consumerGroup":null}}"#)).await;

    let answer = reply.json();
    let success: Vec<_> = answer.as_array().unwrap().iter().map(|item| item["success"].as_bool().unwrap()).collect();
    assert_eq!(success, [true, true, false], "{answer}");
    let again = server.get("/api/v1/pop/queue/q?batch=9").await;
    assert_eq!(again.data(), [json!(1), json!(2)]);
    assert_eq!(again.messages()[0]["deliveryAttempt"], 2);
}

#[tokio::test]
async fn after_too_many_failures_it_is_a_dead_letter_that_can_be_redriven() {
    let server = TestServer::new().await;
    server.post("/api/v1/configure", r#"{"queue":"q","options":{"retryLimit":1}}"#).await;
    server.push("q", r#"{"poison":1}"#).await;
    for _ in 0..2 {
        let messages = server.get("/api/v1/pop/queue/q").await.messages();
        let failed = ack(&messages[0], "failed").replace("\"error\":null", "\"error\":\"broke\"");
        assert_eq!(server.post("/api/v1/ack", failed).await.json()[0]["success"], true);
    }
    server.get("/api/v1/pop/queue/q").await.assert_nothing();

    let dead = server.get("/api/v1/dlq?queue=q").await.json();

    assert_eq!((&dead["total"], &dead["pagination"]["hasMore"]), (&json!(1), &json!(false)));
    let letter = &dead["messages"][0];
    assert_eq!((&letter["data"], &letter["errorMessage"]), (&json!({"poison": 1}), &json!("broke")));
    assert_eq!((&letter["consumerGroup"], &letter["retryCount"]), (&json!("__QUEUE_MODE__"), &json!(2)));
    assert_eq!(server.get("/api/v1/dlq?queue=q&offset=1").await.json()["messages"], json!([]));
    let id = letter["id"].as_str().unwrap();
    assert_eq!(server.post(&format!("/api/v1/dlq/{id}/replay"), "").await.json()["redriven"], 1);
    assert_eq!(server.get("/api/v1/pop/queue/q").await.data(), [json!({"poison": 1})]);
    assert_eq!(server.get("/api/v1/dlq?queue=q").await.json()["total"], 0);
}

#[tokio::test]
async fn each_refused_ack_of_a_batch_says_why() {
    let server = TestServer::new().await;
    let messages = popped(&server, 1).await;
    let good = ack(&messages[0], "completed");
    let stranger = "00000000-0000-4000-8000-000000000000";
    let uid = messages[0]["partitionId"].as_str().unwrap();
    let items = [
        format!(r#"{{"transactionId":"x","partitionId":"{stranger}"}}"#),
        r#"{"transactionId":"x","partitionId":"no uuid"}"#.to_owned(),
        format!(r#"{{"transactionId":"nobody","partitionId":"{uid}"}}"#),
        format!(r#"{{"transactionId":"a\u0000b","partitionId":"{uid}"}}"#),
        r#"{"partitionId":"x"}"#.to_owned(),
        good.replace("completed", "eaten"),
        format!(r#"{{"transactionId":{},"partitionId":"{uid}","leaseId":"{stranger}"}}"#, messages[0]["transactionId"]),
        format!(r#"{{"transactionId":{},"partitionId":"{uid}","leaseId":"nonsense"}}"#, messages[0]["transactionId"]),
        good,
    ];

    let body = format!(r#"{{"acknowledgments":[{}]}}"#, items.join(","));
    let answer = server.post("/api/v1/ack/batch", body).await.json();

    let errors: Vec<_> = answer.as_array().unwrap().iter().map(|item| item["error"].as_str().unwrap_or("")).collect();
    let not_found = "Message not found";
    let lost = "invalid or expired lease";
    assert_eq!(errors[..4], [not_found; 4]);
    assert_eq!(errors[4], "transactionId is required");
    assert!(errors[5].contains("eaten"), "{errors:?}");
    assert_eq!(errors[6..], [lost, lost, ""]);
}

#[tokio::test]
async fn an_ack_that_says_too_little_is_refused() {
    let server = TestServer::new().await;
    for (path, body) in [
        ("/api/v1/ack", ""),
        ("/api/v1/ack", "null"),
        ("/api/v1/ack", "{}"),
        ("/api/v1/ack", r#"{"transactionId":"x"}"#),
        ("/api/v1/ack", r#"{"transactionId":5,"partitionId":"x"}"#),
        ("/api/v1/ack/batch", "{}"),
        ("/api/v1/ack/batch", r#"{"acknowledgments":{}}"#),
        ("/api/v1/ack/batch", r#"{"acknowledgments":[null]}"#),
    ] {
        assert_eq!(server.post(path, body).await.status, 400, "{body}");
    }
    assert_eq!(server.post("/api/v1/ack/batch", r#"{"acknowledgments":[]}"#).await.body, "[]");
}

#[tokio::test]
async fn an_ack_without_a_lease_counts_as_one_unless_the_queue_wants_it() {
    let server = TestServer::new().await;
    let messages = popped(&server, 2).await;
    let bare = |message: &Value| {
        format!(r#"{{"transactionId":{},"partitionId":{}}}"#, message["transactionId"], message["partitionId"])
    };

    assert_eq!(server.post("/api/v1/ack", bare(&messages[0])).await.json()[0]["success"], true);
    server.post("/api/v1/configure", r#"{"queue":"q","options":{"requireLease":true}}"#).await;

    let refused = server.post("/api/v1/ack", bare(&messages[1])).await.json();
    assert!(refused[0]["error"].as_str().unwrap().contains("leaseId"), "{refused}");
    assert_eq!(server.handle.messages().unfenced_acknowledgements(), 1);
}

#[tokio::test]
async fn groups_ack_for_themselves() {
    let server = TestServer::new().await;
    server.push("q", "1").await;
    let mine = server.get("/api/v1/pop/queue/q?consumerGroup=mine").await.messages();
    server.get("/api/v1/pop/queue/q?consumerGroup=yours").await.messages();

    let body = format!(r#"{{"acknowledgments":[{}],"consumerGroup":"mine"}}"#, ack(&mine[0], "completed"));
    assert_eq!(server.post("/api/v1/ack/batch", body).await.json()[0]["success"], true);

    let lag = server.get("/api/v1/consumer-groups").await.json();
    let lags: Vec<_> =
        lag.as_array().unwrap().iter().map(|group| (group["name"].clone(), group["totalLag"].clone())).collect();
    assert!(lags.contains(&(json!("mine"), json!(0))) && lags.contains(&(json!("yours"), json!(1))), "{lag}");
}

#[tokio::test]
async fn a_lease_is_extended_without_a_body_and_an_unknown_one_is_refused() {
    let server = TestServer::new().await;
    let messages = popped(&server, 1).await;
    let lease = messages[0]["leaseId"].as_str().unwrap();
    for body in ["", "{}", r#"{"seconds":120}"#, r#"{"seconds":null}"#] {
        let reply = server.post(&format!("/api/v1/lease/{lease}/extend"), body).await;

        let answer = reply.json();
        assert_eq!((reply.status, &answer["success"], &answer["renewed"]), (200, &json!(true), &json!(1)), "{body}");
        assert!(answer["newExpiresAt"].as_str().unwrap().ends_with('Z'), "{answer}");
        assert_eq!(answer["newExpiresAt"], answer["expiresAt"]);
    }
    for stranger in ["nonsense", "00000000-0000-4000-8000-000000000000"] {
        let reply = server.post(&format!("/api/v1/lease/{stranger}/extend"), "").await;
        assert_eq!((reply.status, &reply.json()["success"]), (200, &json!(false)));
    }
    for seconds in ["0", "-5", "1e300"] {
        let reply = server.post(&format!("/api/v1/lease/{lease}/extend"), format!(r#"{{"seconds":{seconds}}}"#)).await;
        assert_eq!(reply.status, 400, "{seconds}");
    }
}
