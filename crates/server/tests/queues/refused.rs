//! What a request says wrongly is refused in plain words, never ignored.

use serde_json::json;

use crate::support::TestServer;

async fn refusal(server: &TestServer, path: &str, body: &str) -> String {
    let reply = server.post(path, body).await;
    assert_eq!(reply.status, 400, "{path} {body}: {}", reply.body);
    reply.json()["error"].as_str().expect("a sentence").to_owned()
}

#[tokio::test]
async fn a_misspelt_option_is_refused_with_the_one_that_was_meant() {
    let server = TestServer::new().await;
    let configure = async |body: &str| refusal(&server, "/api/v1/configure", body).await;

    let slip = configure(r#"{"queue":"q","options":{"leasTime":5}}"#).await;
    let unknown = configure(r#"{"queue":"q","options":{"frobnicate":1}}"#).await;
    let misplaced = configure(r#"{"queue":"q","leaseTime":5}"#).await;
    let misnamed = configure(r#"{"queue":"q","option":{"leaseTime":5}}"#).await;

    assert!(slip.contains("options.leasTime") && slip.contains("did you mean leaseTime?"), "{slip}");
    assert!(unknown.contains("options.frobnicate") && unknown.contains("leaseTime, "), "{unknown}");
    assert!(misplaced.contains("leaseTime belongs in options"), "{misplaced}");
    assert!(misnamed.contains("did you mean options?"), "{misnamed}");
    assert_eq!(server.get("/api/v1/resources/queues/q").await.code(), "no_such_queue", "nothing was made");
}

#[tokio::test]
async fn options_of_queen_that_mean_nothing_here_are_ignored() {
    let server = TestServer::new().await;

    let body = r#"{"queue":"q","clientVersion":"2.6","options":{"leaseTime":5,"minPopWaitTime":25,
        "retentionSinkHold":"","retentionSinkHoldMaxSeconds":604800}}"#;
    let reply = server.post("/api/v1/configure", body).await;

    assert_eq!((reply.status, &reply.json()["options"]["leaseTime"]), (200, &json!(5)), "{}", reply.body);
}

#[tokio::test]
async fn a_wrong_type_is_explained_in_plain_words() {
    let server = TestServer::new().await;

    for (path, body, expected) in [
        (
            "/api/v1/configure",
            r#"{"queue":"q","options":{"leaseTime":"abc"}}"#,
            r#"options.leaseTime must be a number, not the text "abc""#,
        ),
        (
            "/api/v1/configure",
            r#"{"queue":"q","options":{"retryLimit":1.5}}"#,
            "options.retryLimit must be a whole number, not 1.5",
        ),
        (
            "/api/v1/configure",
            r#"{"queue":"q","options":{"retentionSeconds":[]}}"#,
            "options.retentionSeconds must be a number, not an array",
        ),
        (
            "/api/v1/configure",
            r#"{"queue":"q","options":{"paused":"yes"}}"#,
            r#"options.paused must be true or false, not the text "yes""#,
        ),
        ("/api/v1/configure", r#"{"queue":"q","options":[]}"#, "options must be an object, not an array"),
        ("/api/v1/configure", r#"{"queue":5}"#, "queue must be a text, not 5"),
        ("/api/v1/push", r#"{"items":{}}"#, "items must be an array of at most 100000 entries, not an object"),
        ("/api/v1/push", r#"{"items":[{"queue":"q"},{"queue":true}]}"#, "items[1].queue must be a text, not true"),
        ("/api/v1/push", r#"{"items":["x"]}"#, r#"items[0] must be an object, not the text "x""#),
        ("/api/v1/push", "[]", "the body must be an object, not an array"),
        ("/api/v1/push", r#"{"items":[],"items":[]}"#, "items comes twice"),
        (
            "/api/v1/system/maintenance",
            r#"{"enabled":"true"}"#,
            r#"enabled must be true or false, not the text "true""#,
        ),
        (
            "/api/v1/traces",
            r#"{"transactionId":"x","partitionId":"y","data":1,"traceNames":[5]}"#,
            "traceNames must be a text or a list of texts",
        ),
        ("/api/v1/dlq/redrive", r#"{"ids":5}"#, "ids must be an array of at most 10000 entries, not 5"),
    ] {
        assert_eq!(refusal(&server, path, body).await, expected, "{path} {body}");
    }
}

#[tokio::test]
async fn fields_that_would_change_what_is_meant_are_refused_and_others_pass() {
    let server = TestServer::new().await;

    for field in ["delay", "deliverAt", "ttl", "priority", "transaction_id", "runAt", "expiresAt"] {
        for value in ["5", r#""2030-01-01T00:00:00Z""#, "0"] {
            let body = format!(r#"{{"items":[{{"queue":"q","payload":1}},{{"queue":"q","{field}":{value}}}]}}"#);
            let sentence = refusal(&server, "/api/v1/push", &body).await;
            assert!(sentence.contains(&format!("items[1].{field}")), "{sentence}");
            assert!(sentence.contains("transactionId"), "it says what there is: {sentence}");
        }
    }
    server.get("/api/v1/pop/queue/q").await.assert_nothing();
    let harmless =
        r#"{"items":[{"queue":"q","payload":1,"producerSub":"me","note":"x","delay":null}],"client":"mine"}"#;
    assert_eq!(server.post("/api/v1/push", harmless).await.status, 201);
}

#[tokio::test]
async fn a_misspelt_filter_does_not_mean_everything() {
    let server = TestServer::new().await;
    server.push("q", "1").await;
    server.get("/api/v1/pop/queue/q?consumerGroup=g").await.messages();

    let redrive = refusal(&server, "/api/v1/dlq/redrive", r#"{"consumergroup":"g","all":true}"#).await;
    let path = "/api/v1/consumer-groups/g/queues/q/partitions/Default/seek";
    let seek = refusal(&server, path, r#"{"to_beginning":true}"#).await;

    assert!(redrive.contains("did you mean consumerGroup?"), "{redrive}");
    assert!(seek.contains("did you mean toBeginning?"), "{seek}");
}

#[tokio::test]
async fn a_lease_is_extended_by_a_number_of_seconds_or_the_default() {
    let server = TestServer::new().await;
    server.push("q", "1").await;
    let lease = server.get("/api/v1/pop/queue/q").await.messages()[0]["leaseId"].as_str().unwrap().to_owned();
    let path = format!("/api/v1/lease/{lease}/extend");

    for (body, expected) in [
        (r#"{"seconds":"120"}"#, r#"seconds must be a number, not the text "120""#),
        (r#"{"seconds":true}"#, "seconds must be a number, not true"),
        (r#"{"seconds":0}"#, "seconds must be more than zero"),
        (r#"{"seconds":-5}"#, "seconds must be more than zero"),
        (r#"{"seconds":1e300}"#, "less than a lifetime"),
        (r#"{"second":5}"#, "did you mean seconds?"),
        ("[]", "the body must be an object"),
        ("{", "Invalid JSON"),
    ] {
        let sentence = refusal(&server, &path, body).await;
        assert!(sentence.contains(expected), "{body}: {sentence}");
    }
    for body in ["{}", r#"{"seconds":120}"#, r#"{"seconds":null}"#] {
        assert_eq!(server.post(&path, body).await.json()["success"], true, "{body}");
    }
    let nothing = format!("POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    assert_eq!(server.client().say(nothing).await.json()["success"], true);
}

#[tokio::test]
async fn an_answer_repeats_no_more_than_a_little_of_what_was_sent() {
    let server = TestServer::new().await;
    let long = "ü".repeat(100_000);

    for (path, body) in [
        ("/api/v1/dlq/redrive", format!(r#"{{"ids":["{long}"]}}"#)),
        ("/api/v1/dlq/redrive", format!(r#"{{"from":"{long}"}}"#)),
        ("/api/v1/configure", format!(r#"{{"queue":"q","mode":"{long}"}}"#)),
        ("/api/v1/configure", format!(r#"{{"queue":"q","options":{{"leaseTime":"{long}"}}}}"#)),
        ("/api/v1/configure", format!(r#"{{"queue":"q","options":{{"{long}":1}}}}"#)),
        ("/api/v1/configure", format!(r#"{{"queue":"{long}"}}"#)),
        ("/api/v1/push", format!(r#"{{"items":[{{"queue":["{long}"]}}]}}"#)),
        ("/api/v1/system/maintenance", format!(r#"{{"enabled":"{long}"}}"#)),
    ] {
        let sentence = refusal(&server, path, &body).await;
        assert!(sentence.chars().count() <= 600, "{path}: {} characters", sentence.chars().count());
        assert!(sentence.chars().filter(|letter| *letter == 'ü').count() <= 200, "{path}: {sentence}");
    }
    let padded = format!(r#"{{"timestamp":"{}2026-05-16"}}"#, " ".repeat(100_000));
    refusal(&server, "/api/v1/consumer-groups/g/queues/q/seek", &padded).await;
    let reply = server.get(&format!("/api/v1/messages?status={}", "x".repeat(10_000))).await;
    assert!(reply.status == 400 && reply.body.len() < 1000, "{}", reply.body);
}

#[tokio::test]
async fn a_time_that_is_none_is_refused_wherever_it_is_read() {
    let server = TestServer::new().await;
    server.push("q", "1").await;
    let odd = "2026-05-16T10:20:30%2B1%C3%A92";
    let plain = "2026-05-16T10:20:30+1é2";

    for path in [
        format!("/api/v1/dlq?from={odd}"),
        format!("/api/v1/messages?to={odd}"),
        format!("/api/v1/pop/queue/q?consumerGroup=g&subscriptionFrom={odd}"),
    ] {
        assert_eq!(server.get(&path).await.code(), "invalid_request", "{path}");
    }
    assert_eq!(server.delete(&format!("/api/v1/dlq?from={odd}")).await.code(), "invalid_request");
    for (path, field) in [
        ("/api/v1/dlq/redrive", "from"),
        ("/api/v1/consumer-groups/g/queues/q/seek", "timestamp"),
        ("/api/v1/consumer-groups/g/subscription", "subscriptionTimestamp"),
    ] {
        let sentence = refusal(&server, path, &format!(r#"{{"{field}":"{plain}"}}"#)).await;
        assert!(sentence.contains("must be a time"), "{sentence}");
    }
}

#[tokio::test]
async fn a_group_called_lagging_is_shown_when_its_name_is_encoded() {
    let server = TestServer::new().await;
    server.push("q", "1").await;
    server.get("/api/v1/pop/queue/q?consumerGroup=lagging").await.messages();

    let list = server.get("/api/v1/consumer-groups/lagging").await.json();
    let group = server.get("/api/v1/consumer-groups/%6Cagging").await.json();

    assert!(list.is_array(), "{list}");
    assert_eq!(group["q"]["partitions"][0]["partition"], "Default", "{group}");
}
