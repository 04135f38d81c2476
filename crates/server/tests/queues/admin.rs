//! Groups, traces, messages, maintenance, status and metrics.

use serde_json::json;

use crate::support::{TestServer, ack};

#[tokio::test]
async fn a_group_can_be_moved_listed_and_deleted() {
    let server = TestServer::new().await;
    server.push("q", "1").await;
    server.push("q", "2").await;
    server.get("/api/v1/pop/queue/q?consumerGroup=g").await.messages();
    let seek = "/api/v1/consumer-groups/g/queues/q/seek";

    let moved = server.post(seek, r#"{"toEnd":true}"#).await.json();
    assert_eq!(
        (&moved["success"], &moved["partitionsUpdated"], &moved["seekToEnd"]),
        (&json!(true), &json!(1), &json!(true))
    );
    server.get("/api/v1/pop/queue/q?consumerGroup=g").await.assert_nothing();
    server.post(seek, r#"{"timestamp":"2020-01-01T00:00:00.000Z"}"#).await;
    assert_eq!(server.get("/api/v1/pop/queue/q?consumerGroup=g&batch=9").await.data(), [json!(1), json!(2)]);
    server.post("/api/v1/consumer-groups/g/queues/q/partitions/Default/seek", "").await;
    server.get("/api/v1/pop/queue/q?consumerGroup=g").await.assert_nothing();

    let one = server.get("/api/v1/consumer-groups/g").await.json();
    assert_eq!(one["q"]["partitions"][0]["offsetLag"], 0);
    assert_eq!(server.get("/api/v1/consumer-groups/lagging?minLagSeconds=0").await.json(), json!([]));
    let gone = server.delete("/api/v1/consumer-groups/g?deleteMetadata=true").await.json();
    assert_eq!(
        (&gone["success"], &gone["metadataDeleted"], &gone["deletedPartitions"]),
        (&json!(true), &json!(true), &json!(1))
    );
    assert_eq!(server.get("/api/v1/pop/queue/q?consumerGroup=g&batch=9").await.data(), [json!(1), json!(2)]);
    let again = server.delete("/api/v1/consumer-groups/g/queues/q").await.json();
    assert_eq!((&again["queueName"], &again["deletedPartitions"]), (&json!("q"), &json!(1)));
}

#[tokio::test]
async fn groups_are_listed_a_page_at_a_time() {
    let server = TestServer::new().await;
    server.push("q", "1").await;
    for name in ["a", "b", "c"] {
        server.get(&format!("/api/v1/pop/queue/q?consumerGroup={name}")).await.messages();
    }
    let names = |listed: serde_json::Value| -> Vec<String> {
        let listed = listed.as_array().expect("is a list").clone();
        listed.iter().map(|group| group["name"].as_str().expect("has a name").to_owned()).collect()
    };

    assert_eq!(names(server.get("/api/v1/consumer-groups").await.json()), ["a", "b", "c"]);
    assert_eq!(names(server.get("/api/v1/consumer-groups?limit=2").await.json()), ["a", "b"]);
    assert_eq!(names(server.get("/api/v1/consumer-groups?limit=2&offset=2").await.json()), ["c"]);
    let queues = server.get("/api/v1/resources/queues?limit=1").await.json();
    assert_eq!(queues["queues"][0]["messages"], json!({ "total": 1, "pending": 1, "leasedPartitions": 3 }));
}

#[tokio::test]
async fn one_group_too_many_is_refused_with_a_reason() {
    let server = TestServer::new().await;
    server.push("q", "1").await;
    let many = "insert into reveille.consumer_group (queue, name, mode, settled)
                select (select id from reveille.queue), 'g' || n, 'all', true from generate_series(1, 1000) n";
    server.db.client().await.execute(many, &[]).await.unwrap();

    let refused = server.get("/api/v1/pop/queue/q?consumerGroup=more").await;

    assert_eq!((refused.status, refused.code().as_str()), (409, "too_many_groups"));
}

#[tokio::test]
async fn a_move_that_says_nothing_or_nonsense_is_refused() {
    let server = TestServer::new().await;
    server.push("q", "1").await;
    server.get("/api/v1/pop/queue/q?consumerGroup=g").await.messages();
    let seek = "/api/v1/consumer-groups/g/queues/q/seek";

    for body in ["", "{}", r#"{"toEnd":false}"#, r#"{"timestamp":"soon"}"#, r#"{"timestamp":5}"#] {
        assert_eq!(server.post(seek, body).await.status, 400, "{body}");
    }
    assert_eq!(
        server.post("/api/v1/consumer-groups/none/queues/q/seek", r#"{"toEnd":true}"#).await.code(),
        "no_such_group"
    );
    assert_eq!(
        server.post("/api/v1/consumer-groups/g/queues/none/seek", r#"{"toEnd":true}"#).await.code(),
        "no_such_queue"
    );
    let partition = "/api/v1/consumer-groups/g/queues/q/partitions/none/seek";
    assert_eq!(server.post(partition, "{}").await.code(), "no_such_partition");
    let subscription = "/api/v1/consumer-groups/g/subscription";
    assert_eq!(server.post(subscription, "{}").await.status, 400);
    let changed = server.post(subscription, r#"{"subscriptionTimestamp":"2020-01-01"}"#).await.json();
    assert_eq!((&changed["success"], &changed["rowsUpdated"]), (&json!(true), &json!(1)));
}

#[tokio::test]
async fn notes_about_a_message_are_found_by_message_and_by_name() {
    let server = TestServer::new().await;
    server.push("q", "1").await;
    let message = server.get("/api/v1/pop/queue/q").await.messages()[0].clone();
    let (id, partition) = (message["transactionId"].as_str().unwrap(), message["partitionId"].as_str().unwrap());
    let body = |names: &str| {
        format!(
            r#"{{"transactionId":"{id}","partitionId":"{partition}","data":{{"n":1.50}},"eventType":"step","traceNames":{names}}}"#
        )
    };

    for names in ["null", r#""trip""#, r#"["trip","tour"]"#] {
        assert_eq!(server.post("/api/v1/traces", body(names)).await.json()["success"], true, "{names}");
    }

    let all = server.get(&format!("/api/v1/traces/{partition}/{id}")).await;
    assert_eq!(all.json()["traces"].as_array().unwrap().len(), 3);
    assert!(all.body.contains(r#""data":{"n":1.50}"#), "{}", all.body);
    let named = server.get("/api/v1/traces/by-name/trip?limit=1").await.json();
    assert_eq!((named["traces"].as_array().unwrap().len(), &named["total"]), (1, &json!(2)));
    let names = server.get("/api/v1/traces/names").await.json();
    assert_eq!(names["total"], 2, "{names}");
    for wrong in
        ["{}", r#"{"transactionId":"x"}"#, &format!(r#"{{"transactionId":"{id}","partitionId":"{partition}"}}"#)]
    {
        assert_eq!(server.post("/api/v1/traces", wrong).await.status, 400, "{wrong}");
    }
    let chatty = body("null").replace(r#""step""#, &format!("\"{}\"", "x".repeat(1001)));
    assert_eq!(server.post("/api/v1/traces", chatty).await.status, 400, "a kind is a word");
    let unknown = r#"{"transactionId":"x","partitionId":"x","data":1}"#;
    assert_eq!(server.post("/api/v1/traces", unknown).await.code(), "no_such_message");
}

#[tokio::test]
async fn messages_are_read_without_being_consumed() {
    let server = TestServer::new().await;
    server.post("/api/v1/push", r#"{"items":[{"queue":"q","transactionId":"a/b","payload":{"x":1.0,"x":2}}]}"#).await;
    let listed = server.get("/api/v1/messages?queue=q").await.json();
    let seen = &listed["messages"][0];
    assert_eq!((&seen["transactionId"], &seen["status"]), (&json!("a/b"), &json!("pending")));
    let path = format!("/api/v1/messages/{}/a%2Fb", seen["partitionId"].as_str().unwrap());

    let one = server.get(&path).await;

    assert_eq!(one.json()["queue"], "q");
    assert!(one.body.ends_with(r#""payload":{"x":1.0,"x":2}}"#), "{}", one.body);
    assert_eq!(server.get("/api/v1/messages?status=processing").await.json()["messages"], json!([]));
    assert_eq!(server.get("/api/v1/messages?status=lost").await.status, 400);
    assert_eq!(server.delete(&path).await.json()["success"], true);
    assert_eq!(server.delete(&path).await.code(), "no_such_message");
    assert_eq!(server.get(&path).await.code(), "no_such_message");
    server.get("/api/v1/pop/queue/q").await.assert_nothing();
}

#[tokio::test]
async fn paused_pushes_are_kept_and_come_in_order_afterwards() {
    let server = TestServer::new().await;
    server.push("q", "1").await;
    let paused = server.post("/api/v1/system/maintenance", r#"{"enabled":true}"#).await.json();
    assert_eq!((&paused["maintenanceMode"], &paused["bufferedMessages"]), (&json!(true), &json!(0)));

    assert_eq!(server.push("q", "2").await["status"], "buffered");
    assert_eq!(server.push("q", "3").await["status"], "buffered");

    assert_eq!(server.get("/api/v1/system/maintenance").await.json()["bufferedMessages"], 2);
    let first = server.get("/api/v1/pop/queue/q?batch=9").await;
    assert_eq!(first.data(), [json!(1)], "pops go on");
    server.post("/api/v1/ack", ack(&first.messages()[0], "completed")).await;
    let resumed = server.post("/api/v1/system/maintenance", r#"{"enabled":false}"#).await.json();
    assert_eq!(resumed["maintenanceMode"], false);
    assert_eq!(server.push("q", "4").await["status"], "queued");
    assert_eq!(
        server.get("/api/v1/pop/queue/q?batch=9&wait=true&timeout=20000").await.data(),
        [json!(2), json!(3), json!(4)]
    );
    assert_eq!(server.get("/api/v1/system/maintenance").await.json()["bufferedMessages"], 0);
    for wrong in ["", "{}", r#"{"enabled":"yes"}"#] {
        assert_eq!(server.post("/api/v1/system/maintenance", wrong).await.status, 400, "{wrong}");
    }
}

#[tokio::test]
async fn paused_pops_find_nothing_until_they_go_on() {
    let server = TestServer::new().await;
    server.push("q", "1").await;
    let paused = server.post("/api/v1/system/maintenance/pop", r#"{"enabled":true}"#).await.json();
    assert_eq!(paused["popMaintenanceMode"], true);
    server.get("/api/v1/pop/queue/q").await.assert_nothing();
    let mut parked = server.client().spawn("/api/v1/pop/queue/q?wait=true&timeout=20000");
    server.until_waiting(1).await;

    server.post("/api/v1/system/maintenance/pop", r#"{"enabled":false}"#).await;

    assert_eq!(parked.reply().await.data(), [json!(1)]);
}

#[tokio::test]
async fn status_and_metrics_show_what_happened() {
    let server = TestServer::new().await;
    server.push("q", "1").await;
    let message = server.get("/api/v1/pop/queue/q").await.messages()[0].clone();
    server.post("/api/v1/ack", ack(&message, "completed")).await;
    let mut parked = server.client().spawn("/api/v1/pop/queue/q?wait=true&timeout=20000");
    server.until_waiting(1).await;

    let status = server.get("/api/v1/status").await.json();
    let metrics = server.get("/metrics").await;
    let same = server.get("/metrics/prometheus").await;

    assert_eq!((&status["registry"]["waiting"], &status["registry"]["parked"]), (&json!(1), &json!(1)), "{status}");
    assert_eq!((&status["registry"]["groups"], &status["lanes"]["connections"]), (&json!(1), &json!(3)));
    assert_eq!((&status["messages"]["pushed"], &status["messages"]["acked"]), (&json!(1), &json!(1)));
    assert_eq!((&status["batching"]["push"], &status["batching"]["pop"]), (&json!(1.0), &json!(1.0)));
    assert!(status["wake"]["link"].is_string() && status["wake"]["pace"].is_string());
    assert!(metrics.head.contains("content-type: text/plain; version=0.0.4"), "{}", metrics.head);
    for line in [
        "reveille_push_messages_total{outcome=\"queued\"} 1",
        "reveille_pop_messages_total 1",
        "reveille_ack_messages_total{outcome=\"settled\"} 1",
        "reveille_parked_requests 1",
        "reveille_waited_keys{state=\"waited\"} 1",
    ] {
        assert!(metrics.body.lines().any(|found| found == line), "{line}\n{}", metrics.body);
    }
    let wellformed = |line: &str| {
        line.starts_with("# ") || line.rsplit_once(' ').is_some_and(|(_, value)| value.parse::<f64>().is_ok())
    };
    assert!(same.body.lines().all(wellformed), "{}", same.body);
    server.push("q", "2").await;
    parked.reply().await.messages();
}

async fn assert_metrics(server: &TestServer, lines: &[&str]) {
    let metrics = server.get("/metrics").await;
    for line in lines {
        assert!(metrics.body.lines().any(|found| found == *line), "{line}\n{}", metrics.body);
    }
}

#[tokio::test]
async fn what_a_transaction_does_is_counted_as_if_it_were_done_alone() {
    let server = TestServer::new().await;
    server.post("/api/v1/push", r#"{"items":[{"queue":"q","payload":1},{"queue":"q","payload":2}]}"#).await;
    let messages = server.get("/api/v1/pop/queue/q?batch=2").await.messages();
    let done = |message: &serde_json::Value, status| ack(message, status).replacen('{', r#"{"type":"ack","#, 1);
    let both = format!("{},{}", done(&messages[0], "completed"), done(&messages[1], "dlq"));
    let push = r#"{"type":"push","items":[{"queue":"out","payload":1},{"queue":"out","payload":2}]}"#;
    let nonsense = r#"{"type":"ack","transactionId":"x","partitionId":"nonsense"}"#;

    let committed = server.post("/api/v1/transaction", format!(r#"{{"operations":[{both},{push}]}}"#)).await.json();
    let refused = server.post("/api/v1/transaction", format!(r#"{{"operations":[{push},{nonsense}]}}"#)).await.json();

    assert_eq!((&committed["success"], &refused["success"]), (&json!(true), &json!(false)), "{committed}");
    let lines = [
        "reveille_push_messages_total{outcome=\"queued\"} 4",
        "reveille_ack_messages_total{outcome=\"settled\"} 2",
        "reveille_dead_letters_total 1",
        "reveille_transactions_total{outcome=\"committed\"} 1",
        "reveille_transactions_total{outcome=\"refused\"} 1",
    ];
    assert_metrics(&server, &lines).await;
}

#[tokio::test]
async fn a_message_that_was_claimed_too_often_is_counted_among_the_dead_letters() {
    let server = TestServer::new().await;
    server.push("q", "1").await;
    server.get("/api/v1/pop/queue/q").await.messages();
    let client = server.db.client().await;
    // As if the lease of its only claim had ended.
    let over = "update reveille.queue set max_deliveries = 1;
        update reveille.cursor set lease_until = clock_timestamp() - interval '1 s', due_at = clock_timestamp() - interval '1 s'";
    client.batch_execute(over).await.unwrap();

    server.get("/api/v1/pop/queue/q").await.assert_nothing();

    assert_metrics(&server, &["reveille_dead_letters_total 1"]).await;
    assert_eq!(server.get("/api/v1/status").await.json()["messages"]["deadLettered"], 1);
}

#[tokio::test]
async fn repairs_by_upkeep_are_reported() {
    let server = TestServer::new().await;
    server.push("q", "1").await;
    let message = server.get("/api/v1/pop/queue/q").await.messages()[0].clone();
    server.post("/api/v1/ack", ack(&message, "completed")).await;
    server.push("q", "2").await;
    assert_metrics(&server, &["reveille_repairs_total 0"]).await;
    let broken = "update reveille.partition_row set new_since = null; update reveille.cursor set due_at = null";
    server.db.client().await.batch_execute(broken).await.unwrap();

    server.handle.messages().upkeep().await.unwrap();

    assert_metrics(&server, &["reveille_repairs_total 1"]).await;
    assert_eq!(server.get("/api/v1/status").await.json()["messages"]["repairs"], 1);
}

#[tokio::test]
async fn unknown_paths_and_wrong_methods_are_answered_in_json() {
    let server = TestServer::new().await;

    assert_eq!(
        server.post("/api/v1/stats/refresh", "").await.json()["success"],
        true,
        "our figures are always current"
    );
    let missing = server.get("/api/v1/analytics/queue-lag").await;
    let wrong = server.get("/api/v1/push").await;

    assert_eq!((missing.status, missing.body.as_str()), (404, r#"{"code":"no_such_route","error":"Not Found"}"#));
    assert_eq!((wrong.status, wrong.code().as_str()), (405, "method_not_allowed"));
}
