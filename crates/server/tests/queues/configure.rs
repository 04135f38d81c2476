//! `POST /api/v1/configure`, and deleting a queue.

use serde_json::json;

use crate::support::TestServer;

const OPTIONS: [&str; 15] = [
    "leaseTime",
    "maxSize",
    "ttl",
    "retryLimit",
    "retryDelay",
    "deadLetterQueue",
    "dlqAfterMaxRetries",
    "priority",
    "delayedProcessing",
    "windowBuffer",
    "retentionSeconds",
    "completedRetentionSeconds",
    "retentionEnabled",
    "encryptionEnabled",
    "maxWaitTimeSeconds",
];

#[tokio::test]
async fn every_option_is_echoed_and_only_what_is_named_changes() {
    let server = TestServer::new().await;

    let body = r#"{"queue":"q","namespace":"n","task":"t","options":{"leaseTime":1.5,"retryLimit":7,"retryDelay":250,
        "priority":-3,"retentionSeconds":60,"retentionEnabled":true,"dedupWindowSeconds":9}}"#;
    let first = server.post("/api/v1/configure", body).await.json();
    let second = server
        .post("/api/v1/configure", r#"{"queue":"q","namespace":null,"options":{"retryLimit":8,"ttl":null}}"#)
        .await
        .json();

    assert_eq!((&first["configured"], &first["queue"]), (&json!(true), &json!("q")));
    assert_eq!((&first["namespace"], &first["task"]), (&json!("n"), &json!("t")));
    for option in OPTIONS {
        assert!(!first["options"][option].is_null(), "{option} is missing: {first}");
    }
    let mut expected = first["options"].clone();
    assert_eq!((&expected["leaseTime"], &expected["retryDelay"]), (&json!(1.5), &json!(250)));
    assert_eq!((&expected["priority"], &expected["retentionSeconds"]), (&json!(-3), &json!(60)));
    assert_eq!((&expected["retentionEnabled"], &expected["dedupWindowSeconds"]), (&json!(true), &json!(9)));
    expected["retryLimit"] = json!(8);
    assert_eq!((&second["options"], &second["namespace"]), (&expected, &json!("n")));
    let queue = server.handle.messages().queue(&"q".parse().unwrap()).await.unwrap().unwrap();
    assert_eq!(queue.retention.as_secs(), 60, "it is in force");
}

#[tokio::test]
async fn replacing_sets_the_rest_to_what_a_new_queue_has() {
    let server = TestServer::new().await;
    server
        .post(
            "/api/v1/configure",
            r#"{"queue":"q","options":{"retryLimit":7,"retentionSeconds":60,"retentionEnabled":true}}"#,
        )
        .await;

    let answer = server.post("/api/v1/configure", r#"{"queue":"q","mode":"replace","options":{"ttl":5}}"#).await.json();

    let options = &answer["options"];
    assert_eq!((&options["retryLimit"], &options["ttl"], &options["leaseTime"]), (&json!(3), &json!(5), &json!(300)));
    let queue = server.handle.messages().queue(&"q".parse().unwrap()).await.unwrap().unwrap();
    assert_eq!(queue.retention.as_secs(), 0);
}

#[tokio::test]
async fn impossible_values_are_refused_with_a_reason() {
    let server = TestServer::new().await;
    for body in [
        "{}",
        r#"{"queue":null}"#,
        r#"{"queue":5}"#,
        r#"{"queue":""}"#,
        r#"{"queue":"q","mode":"merge-ish"}"#,
        r#"{"queue":"q","options":[]}"#,
        r#"{"queue":"q","options":{"leaseTime":"long"}}"#,
        r#"{"queue":"q","options":{"leaseTime":-1}}"#,
        r#"{"queue":"q","options":{"ttl":1e300}}"#,
        r#"{"queue":"q","options":{"retryLimit":-1}}"#,
        r#"{"queue":"q","options":{"retryLimit":99999999999}}"#,
        r#"{"queue":"q","options":{"maxSize":-1}}"#,
        r#"{"queue":"q","options":{"encryptionEnabled":"yes"}}"#,
        r#"{"queue":"q","namespace":"a\u0000b"}"#,
    ] {
        let reply = server.post("/api/v1/configure", body).await;

        assert_eq!(reply.status, 400, "{body}: {}", reply.body);
        assert!(!reply.json()["error"].as_str().unwrap().is_empty());
    }
    assert!(server.handle.messages().queue(&"q".parse().unwrap()).await.unwrap().is_none(), "nothing was made");
}

#[tokio::test]
async fn a_deleted_queue_is_gone_with_its_messages() {
    let server = TestServer::new().await;
    server.push("q", "1").await;

    let first = server.delete("/api/v1/resources/queues/q").await.json();
    let second = server.delete("/api/v1/resources/queues/q").await.json();

    assert_eq!((&first["deleted"], &first["existed"]), (&json!(true), &json!(true)));
    assert_eq!((&second["deleted"], &second["existed"]), (&json!(false), &json!(false)));
    server.get("/api/v1/pop/queue/q").await.assert_nothing();
    assert_eq!(server.get("/api/v1/resources/queues/q").await.code(), "no_such_queue");
    server.push("q", "2").await;
    assert_eq!(server.get("/api/v1/pop/queue/q").await.data(), [json!(2)]);
}

#[tokio::test]
async fn a_queue_is_cleared_as_a_whole_and_goes_on() {
    let server = TestServer::new().await;
    server
        .post("/api/v1/push", r#"{"items":[{"queue":"a/b","payload":1},{"queue":"a/b","partition":"p","payload":2}]}"#)
        .await;

    let one = server.delete("/api/v1/queues/a%2Fb/clear?partition=p").await;
    let all = server.delete("/api/v1/queues/a%2Fb/clear").await.json();

    assert_eq!((one.status, one.code().as_str()), (400, "invalid_request"));
    assert_eq!((&all["success"], &all["cleared"], &all["queue"]), (&json!(true), &json!(2), &json!("a/b")));
    server.get("/api/v1/pop/queue/a%2Fb?partitions=9").await.assert_nothing();
    server.push("a/b", "3").await;
    assert_eq!(server.get("/api/v1/pop/queue/a%2Fb").await.data(), [json!(3)]);
    assert_eq!(server.delete("/api/v1/queues/none/clear").await.code(), "no_such_queue");
}

#[tokio::test]
async fn queues_namespaces_and_tasks_are_listed() {
    let server = TestServer::new().await;
    server.push("shop.mail", "1").await;
    server.push("shop.mail", "2").await;
    server.post("/api/v1/configure", r#"{"queue":"plain"}"#).await;

    let queues = server.get("/api/v1/resources/queues").await.json();
    let one = server.get("/api/v1/resources/queues/shop.mail").await.json();

    let names: Vec<_> =
        queues["queues"].as_array().unwrap().iter().map(|queue| queue["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["plain", "shop.mail"]);
    assert_eq!((&one["messages"]["total"], &one["messages"]["pending"]), (&json!(2), &json!(2)));
    assert_eq!((&one["namespace"], &one["task"], &one["partitions"]), (&json!("shop"), &json!("mail"), &json!(1)));
    let spaces = server.get("/api/v1/resources/namespaces").await.json();
    assert!(spaces["namespaces"].as_array().unwrap().iter().any(|space| space["namespace"] == "shop"), "{spaces}");
    let tasks = server.get("/api/v1/resources/tasks").await.json();
    assert!(tasks["tasks"].as_array().unwrap().iter().any(|space| space["task"] == "mail"), "{tasks}");
    let page = server.get("/api/v1/resources/queues?limit=1&after=plain").await.json();
    assert_eq!(page["queues"][0]["name"], "shop.mail");
}
