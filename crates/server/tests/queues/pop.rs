//! The three pop routes, without waiting.

use serde_json::json;

use crate::support::{TestServer, ack};

#[tokio::test]
async fn a_popped_message_has_all_its_fields() {
    let server = TestServer::new().await;
    let pushed = server
        .post(
            "/api/v1/push",
            r#"{"items":[{"queue":"mail.out","partition":"p 1","payload":{"a":1},"transactionId":"t-1"}]}"#,
        )
        .await
        .json();

    let popped = server.get("/api/v1/pop/queue/mail.out").await;

    let (answer, message) = (popped.json(), &popped.messages()[0]);
    assert_eq!(
        (&answer["success"], &answer["queue"], &answer["partition"]),
        (&json!(true), &json!("mail.out"), &json!("p 1"))
    );
    assert_eq!((&answer["consumerGroup"], &answer["partitionsClaimed"]), (&json!("__QUEUE_MODE__"), &json!(1)));
    assert_eq!(message["id"], pushed[0]["message_id"]);
    assert_eq!(message["partitionId"], pushed[0]["partition_id"]);
    assert_eq!((&message["transactionId"], &message["queue"]), (&json!("t-1"), &json!("mail.out")));
    assert_eq!((&message["partition"], &message["data"]), (&json!("p 1"), &json!({"a": 1})));
    assert_eq!((&message["deliveryAttempt"], &message["traceId"]), (&json!(1), &json!(null)));
    assert_eq!((&message["leaseId"], &message["consumerGroup"]), (&answer["leaseId"], &json!("__QUEUE_MODE__")));
    let created = message["createdAt"].as_str().unwrap();
    assert!(created.len() == 27 && created.ends_with('Z') && created.as_bytes()[19] == b'.', "{created}");
}

#[tokio::test]
async fn nothing_is_answered_with_nothing_at_all() {
    let server = TestServer::new().await;
    server.push("mail", "1").await;
    server.get("/api/v1/pop/queue/mail").await;

    for path in [
        "/api/v1/pop/queue/mail",
        "/api/v1/pop/queue/mail/partition/Default",
        "/api/v1/pop/queue/mail/partition/none",
        "/api/v1/pop/queue/none",
        "/api/v1/pop?namespace=none",
        "/api/v1/pop?task=none&namespace=none",
    ] {
        server.get(path).await.assert_nothing();
    }
}

#[tokio::test]
async fn hostile_names_are_names() {
    let server = TestServer::new().await;
    let names = [
        ("a/b", "a%2Fb"),
        ("\\\"; drop table x --", "%22%3B%20drop%20table%20x%20--"),
        ("'", "%27"),
        ("🦆", "%F0%9F%A6%86"),
        ("*", "*"),
        ("a+b", "a+b"),
        ("..", "%2E%2E"),
        ("a%2Fb", "a%252Fb"),
        ("a?b#c", "a%3Fb%23c"),
        ("a\\nb", "a%0Ab"),
    ];
    for (name, encoded) in names {
        let body = format!(r#"{{"items":[{{"queue":"{name}","partition":"{name}","payload":"{name}"}}]}}"#);
        assert_eq!(server.post("/api/v1/push", body).await.status, 201, "{name}");

        let group = encoded.replace('+', "%2B");
        let path = format!("/api/v1/pop/queue/{encoded}/partition/{encoded}?consumerGroup={group}");
        let popped = server.get(&path).await;

        let message = &popped.messages()[0];
        assert_eq!((&message["queue"], &message["partition"]), (&message["data"], &message["data"]), "{name}");
        assert_eq!(message["consumerGroup"], message["data"]);
    }
}

#[tokio::test]
async fn parameters_that_make_no_sense_are_refused() {
    let server = TestServer::new().await;
    for path in [
        "/api/v1/pop/queue/q?batch=x",
        "/api/v1/pop/queue/q?batch=-1",
        "/api/v1/pop/queue/q?batch=1.5",
        "/api/v1/pop/queue/q?timeout=soon",
        "/api/v1/pop/queue/q?partitions=%00",
        "/api/v1/pop/queue/q?subscriptionFrom=yesterday",
        "/api/v1/pop/queue/q?consumerGroup=%FF",
        "/api/v1/pop/queue/q?consumerGroup=a%00b",
        "/api/v1/pop/queue/a%00b",
        "/api/v1/pop/queue/%FF",
        "/api/v1/pop?namespace=a%00b",
        "/api/v1/pop",
    ] {
        let reply = server.get(path).await;

        assert_eq!(reply.status, 400, "{path}: {}", reply.body);
        assert!(reply.json()["error"].is_string() && reply.json()["code"].is_string(), "{path}: {}", reply.body);
    }
}

#[tokio::test]
async fn numbers_that_are_too_large_count_as_the_limit() {
    let server = TestServer::new().await;
    for n in 1..=3 {
        server.push("q", &n.to_string()).await;
    }

    let huge = "999999999999999999999999";
    let popped = server.get(&format!("/api/v1/pop/queue/q?batch={huge}&partitions={huge}&timeout={huge}")).await;

    assert_eq!(popped.data(), [json!(1), json!(2), json!(3)]);
}

#[tokio::test]
async fn several_partitions_share_a_lease_and_a_batch() {
    let server = TestServer::new().await;
    for partition in ["a", "b", "c"] {
        let items = format!(r#"{{"queue":"q","partition":"{partition}","payload":1}}"#);
        server.post("/api/v1/push", format!(r#"{{"items":[{items},{items}]}}"#)).await;
    }

    let popped = server.get("/api/v1/pop/queue/q?partitions=2&batch=10").await;

    let messages = popped.messages();
    assert_eq!((messages.len(), &popped.json()["partitionsClaimed"]), (4, &json!(2)));
    assert!(messages.iter().all(|message| message["leaseId"] == messages[0]["leaseId"]));
    assert_ne!(messages[0]["partitionId"], messages[3]["partitionId"]);
}

#[tokio::test]
async fn an_auto_acked_message_has_no_lease_and_does_not_come_again() {
    let server = TestServer::new().await;
    server.push("q", "1").await;

    let popped = server.get("/api/v1/pop/queue/q?autoAck=true").await;

    let message = &popped.messages()[0];
    assert_eq!((&message["leaseId"], &message["deliveryAttempt"]), (&json!(""), &json!(1)));
    assert_eq!(message.get("leaseSeconds"), None);
    let available = server.handle.messages();
    let left = available.available(&"q".parse().unwrap(), &"__QUEUE_MODE__".parse().unwrap()).await.unwrap();
    assert_eq!(left.waiting, 0);
}

#[tokio::test]
async fn groups_see_everything_and_begin_where_they_ask() {
    let server = TestServer::new().await;
    server.push("q", "1").await;

    server.get("/api/v1/pop/queue/q?consumerGroup=late&subscriptionMode=new").await.assert_nothing();
    server.get("/api/v1/pop/queue/q?consumerGroup=later&subscriptionFrom=now").await.assert_nothing();
    server.push("q", "2").await;

    let pop =
        async |group: &str| server.get(&format!("/api/v1/pop/queue/q?batch=9&consumerGroup={group}")).await.data();
    assert_eq!(pop("late").await, [json!(2)]);
    assert_eq!(pop("later").await, [json!(2)]);
    assert_eq!(pop("early&subscriptionMode=from_beginning").await, [json!(1), json!(2)]);
    assert_eq!(pop("dated&subscriptionFrom=2020-01-01T00:00:00Z").await, [json!(1), json!(2)]);
    server.get("/api/v1/pop/queue/q?consumerGroup=future&subscriptionFrom=2999-01-01T00:00:00Z").await.assert_nothing();
}

#[tokio::test]
async fn a_namespace_brings_messages_that_name_their_queue() {
    let server = TestServer::new().await;
    server.push("shop.mail", "1").await;
    server.push("shop.bill", "2").await;

    let first = server.get("/api/v1/pop?namespace=shop").await;
    assert_eq!(first.json()["queue"], "");
    let second = server.get("/api/v1/pop?namespace=shop").await;
    let third = server.get("/api/v1/pop?namespace=shop&task=mail").await;

    let mut queues = [first.messages()[0]["queue"].clone(), second.messages()[0]["queue"].clone()];
    queues.sort_by_key(ToString::to_string);
    assert_eq!(queues, ["shop.bill", "shop.mail"]);
    third.assert_nothing();
}

#[tokio::test]
async fn a_client_that_leaves_the_width_to_us_is_shown_it() {
    let server = TestServer::new().await;
    for n in 1..=3 {
        server.push("q", &n.to_string()).await;
    }

    let popped = server.get("/api/v1/pop/queue/q?autopilot=true").await;

    assert_eq!(popped.messages().len(), 3);
    assert_eq!(popped.json()["autopilot"]["batch"], 200);
}

#[tokio::test]
async fn a_payload_that_is_no_json_says_how_it_is_encoded() {
    let server = TestServer::new().await;
    let messages = server.handle.messages();
    let item = |bytes: &'static [u8]| reveille::messages::PushItem::new("q".parse().unwrap(), bytes);
    messages.push(vec![item(b"plain text"), item(b"\xff\x00")]).await;

    let popped = server.get("/api/v1/pop/queue/q?batch=2").await;

    let answer = popped.messages();
    assert_eq!((&answer[0]["data"], &answer[0]["encoding"]), (&json!("plain text"), &json!("text")));
    assert_eq!((&answer[1]["data"], &answer[1]["encoding"]), (&json!("/wA="), &json!("base64")));
}

#[tokio::test]
async fn a_head_request_leases_nothing() {
    let server = TestServer::new().await;
    server.push("q", "1").await;

    let refused = server.client().ask("HEAD", "/api/v1/pop/queue/q", None).await;

    assert_eq!(refused.status, 405);
    let popped = server.get("/api/v1/pop/queue/q").await;
    assert_eq!(popped.messages()[0]["deliveryAttempt"], 1);
}

#[tokio::test]
async fn a_lease_keeps_the_partition_until_it_is_settled() {
    let server = TestServer::new().await;
    server.push("q", "1").await;
    server.push("q", "2").await;
    let first = server.get("/api/v1/pop/queue/q").await;
    server.get("/api/v1/pop/queue/q").await.assert_nothing();

    server.post("/api/v1/ack", ack(&first.messages()[0], "completed")).await;

    assert_eq!(server.get("/api/v1/pop/queue/q").await.data(), [json!(2)]);
}

#[tokio::test]
async fn what_would_change_the_meaning_of_a_pop_is_refused_before_anything_is_leased() {
    let server = TestServer::new().await;
    server.push("q", "1").await;

    for asked in ["conflation=true", "conflation=1", "frames=true", "leaseSeconds=600"] {
        let refused = server.get(&format!("/api/v1/pop/queue/q?{asked}")).await;
        assert_eq!((refused.status, refused.code().as_str()), (400, "not_served"), "{asked}: {}", refused.body);
    }

    let popped = server.get("/api/v1/pop/queue/q?conflation=false&frames=0").await;
    assert_eq!((popped.data(), &popped.messages()[0]["deliveryAttempt"]), (vec![json!(1)], &json!(1)));
}
