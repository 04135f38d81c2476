//! Requests that no proper client sends: they are refused, and nothing is guessed.

use serde_json::json;

use crate::support::TestServer;

#[tokio::test]
async fn arrays_are_never_taken_for_objects() {
    let server = TestServer::new().await;
    server.push("q", "1").await;
    let message = server.get("/api/v1/pop/queue/q").await.messages()[0].clone();
    let (id, partition) = (&message["transactionId"], &message["partitionId"]);

    for (path, body) in [
        ("/api/v1/push", r#"[[{"queue":"q","payload":2}]]"#.to_owned()),
        ("/api/v1/push", r#"{"items":[["q","Default",2,null,null,null]]}"#.to_owned()),
        ("/api/v1/ack", format!(r#"[{id},{partition},"completed",null,null,null]"#)),
        ("/api/v1/ack/batch", format!(r#"{{"acknowledgments":[[{id},{partition},"completed",null,null,null]]}}"#)),
        ("/api/v1/transaction", r#"{"operations":[["push"]]}"#.to_owned()),
        ("/api/v1/configure", r#"["q",null,null,null,null]"#.to_owned()),
        ("/api/v1/system/maintenance", "[true]".to_owned()),
        ("/api/v1/consumer-groups/__QUEUE_MODE__/queues/q/seek", "[true,null,null]".to_owned()),
        ("/api/v1/dlq/redrive", "[null,null,null,null,null,null,null,true]".to_owned()),
    ] {
        let reply = server.post(path, &body).await;

        assert_eq!(reply.status, 400, "{path} {body}: {}", reply.body);
        assert!(reply.json()["error"].as_str().unwrap().contains("must be an object"), "{body}: {}", reply.body);
    }
    assert_eq!(server.get("/api/v1/system/maintenance").await.json()["maintenanceMode"], false);
    assert_eq!(server.get("/api/v1/resources/queues/q").await.json()["messages"]["pending"], 1, "nothing was settled");
}

#[tokio::test]
async fn true_and_false_have_two_spellings_each_and_nothing_is_guessed() {
    let server = TestServer::new().await;
    server.push("q", "1").await;
    server.push("q", "2").await;

    for path in [
        "/api/v1/pop/queue/q?wait=yes",
        "/api/v1/pop/queue/q?wait=2",
        "/api/v1/pop/queue/q?autoAck=on",
        "/api/v1/pop/queue/q?autopilot=x",
        "/api/v1/pop?namespace=n&wait=%00",
    ] {
        let reply = server.get(path).await;
        assert_eq!((reply.status, reply.code().as_str()), (400, "invalid_request"), "{path}");
    }
    let forgotten = server.delete("/api/v1/consumer-groups/g?deleteMetadata=nope").await;
    assert_eq!(forgotten.status, 400, "nothing is deleted by mistake");

    assert_eq!(server.get("/api/v1/pop/queue/q?autoAck=True").await.data(), [json!(1)]);
    let leased = server.get("/api/v1/pop/queue/q?autoAck=False&wait=0").await;
    assert_eq!((leased.data(), leased.messages()[0]["leaseId"] == ""), (vec![json!(2)], false));
}

#[tokio::test]
async fn of_a_parameter_that_is_given_twice_the_first_counts() {
    let server = TestServer::new().await;
    server.push("q", "1").await;
    server.push("q", "2").await;

    let popped = server.get("/api/v1/pop/queue/q?batch=2&batch=1&batch=x").await;

    assert_eq!(popped.data(), [json!(1), json!(2)]);
}

#[tokio::test]
async fn more_parameters_than_there_are_and_none_of_something_are_refused() {
    let server = TestServer::new().await;
    server.push("q", "1").await;
    let many = "a=1&".repeat(100);
    let long = "x".repeat(513);

    for query in [
        format!("{many}batch=1"),
        "batch=0".to_owned(),
        "partitions=0".to_owned(),
        "batch=-1".to_owned(),
        "wait=true&timeout=-1".to_owned(),
        format!("consumerGroup={long}"),
    ] {
        let reply = server.get(&format!("/api/v1/pop/queue/q?{query}")).await;
        assert_eq!(reply.status, 400, "{query}: {}", reply.body);
    }
    assert_eq!(server.get(&format!("/api/v1/pop?namespace={long}")).await.status, 400);
    assert_eq!(server.get(&format!("/api/v1/pop?task={long}")).await.status, 400);
    server.get("/api/v1/pop/queue/none?wait=true&timeout=0").await.assert_nothing();
    let popped = server.get("/api/v1/pop/queue/q?wait=true&timeout=0").await;
    assert_eq!((popped.data(), &popped.messages()[0]["deliveryAttempt"]), (vec![json!(1)], &json!(1)));
}

#[tokio::test]
async fn a_refusal_describes_the_request_and_shows_nothing_internal() {
    let server = TestServer::new().await;
    let stranger = "00000000-0000-4000-8000-000000000000";
    let note = format!(r#"{{"transactionId":"x","partitionId":"{stranger}","data":1,"traceNames":[5]}}"#);
    let deep = format!(r#"{{"items":[{{"queue":{}}}]}}"#, "[".repeat(100_000));

    for (path, body) in [
        ("/api/v1/traces", note.as_str()),
        ("/api/v1/push", &deep),
        ("/api/v1/push", r#"{"items":[{"queue":"q","payload":1,"payload":2}]}"#),
        ("/api/v1/push", "\u{feff}{}"),
        ("/api/v1/ack/batch", "[]"),
        ("/api/v1/configure", r#"{"queue":"q","options":{"retentionSeconds":-1,"retentionEnabled":true}}"#),
        ("/api/v1/configure", r#"{"queue":"q","options":{"completedRetentionSeconds":1e300}}"#),
    ] {
        let reply = server.post(path, body).await;

        assert_eq!(reply.status, 400, "{path}: {}", reply.body);
        for inside in ["struct", "enum", "variant", "serde", "panicked"] {
            assert!(!reply.body.contains(inside), "{path}: {}", reply.body);
        }
    }
    assert!(server.handle.messages().queue(&"q".parse().unwrap()).await.unwrap().is_none(), "nothing was made");
}

#[tokio::test]
async fn wrong_methods_unknown_paths_and_names_that_are_no_text_are_refused() {
    let server = TestServer::new().await;

    for (method, path) in [
        ("PUT", "/api/v1/push"),
        ("DELETE", "/api/v1/push"),
        ("POST", "/api/v1/pop/queue/q"),
        ("HEAD", "/api/v1/pop"),
        ("HEAD", "/api/v1/pop/queue/q/partition/p"),
        ("GET", "/api/v1/queues/q/clear"),
        ("PATCH", "/api/v1/resources/queues/q"),
        ("OPTIONS", "/api/v1/ack"),
    ] {
        let reply = server.client().ask(method, path, None).await;
        assert_eq!(reply.status, 405, "{method} {path}");
    }
    for path in ["/api/v1/push/", "//api/v1/status", "/api/v1/pop/queue/", "/api/v2/push", "/"] {
        assert_eq!(server.get(path).await.code(), "no_such_route", "{path}");
    }
    for path in ["/api/v1/resources/queues/%FF", "/api/v1/consumer-groups/%FE%FF", "/api/v1/traces/by-name/%80"] {
        assert_eq!(server.get(path).await.code(), "invalid_name", "{path}");
    }
}
