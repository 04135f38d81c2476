//! `POST /api/v1/transaction` does all its parts, or none.

use serde_json::{Value, json};

use crate::support::TestServer;

async fn popped(server: &TestServer) -> Value {
    server.push("in", "1").await;
    server.get("/api/v1/pop/queue/in").await.messages()[0].clone()
}

fn ack(message: &Value, lease: bool) -> String {
    let lease = if lease { format!(r#","leaseId":{}"#, message["leaseId"]) } else { String::new() };
    format!(
        r#"{{"type":"ack","transactionId":{},"partitionId":{}{lease}}}"#,
        message["transactionId"], message["partitionId"]
    )
}

#[tokio::test]
async fn acks_and_pushes_happen_together() {
    let server = TestServer::new().await;
    let message = popped(&server).await;

    let body = format!(
        r#"{{"operations":[{},{{"type":"push","items":[{{"queue":"out","payload":{{"x":1.0}}}},{{"queue":"out","payload":2}}]}},
        {{"type":"push","queue":"flat","data":3,"transactionId":"f"}}],"requiredLeases":[{}]}}"#,
        ack(&message, false),
        message["leaseId"]
    );
    let reply = server.post("/api/v1/transaction", body).await;

    let answer = reply.json();
    assert_eq!((reply.status, &answer["success"]), (200, &json!(true)), "{answer}");
    let kinds: Vec<_> =
        answer["results"].as_array().unwrap().iter().map(|result| result["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["ack", "push", "push", "push"]);
    assert_eq!(answer["results"][3]["transactionId"], "f");
    server.get("/api/v1/pop/queue/in").await.assert_nothing();
    assert!(server.get("/api/v1/pop/queue/out").await.body.contains(r#""data":{"x":1.0}"#));
    assert_eq!(server.get("/api/v1/pop/queue/flat").await.data(), [json!(3)]);
}

#[tokio::test]
async fn one_refusal_undoes_everything_and_says_why() {
    let server = TestServer::new().await;
    let message = popped(&server).await;
    server.post("/api/v1/push", r#"{"items":[{"queue":"seen","transactionId":"d","payload":1}]}"#).await;
    let push = r#"{"type":"push","items":[{"queue":"out","payload":1}]}"#;
    let stranger = "00000000-0000-4000-8000-000000000000";
    let cases = [
        (format!(r#"{push},{{"type":"ack","transactionId":"x","partitionId":"{stranger}"}}"#), "ack_rejected"),
        (format!(r#"{push},{{"type":"ack","transactionId":"x","partitionId":"nonsense"}}"#), "ack_rejected"),
        (
            format!("{push},{}", ack(&message, false).replace('}', &format!(r#","leaseId":"{stranger}"}}"#))),
            "ack_rejected",
        ),
        (
            format!(
                r#"{},{{"type":"push","items":[{{"queue":"seen","transactionId":"d","payload":1}}]}}"#,
                ack(&message, true)
            ),
            "duplicate",
        ),
        (format!(r#"{push},{{"type":"dance"}}"#), "bad_request"),
        (format!(r#"{push},{{"type":"push","items":[{{"payload":1}}]}}"#), "bad_request"),
        (format!(r#"{push},{{"type":"push","items":[{{"queue":"q","transactionId":"a\u0000b"}}]}}"#), "bad_request"),
    ];
    for (operations, reason) in cases {
        let reply = server.post("/api/v1/transaction", format!(r#"{{"operations":[{operations}]}}"#)).await;

        let answer = reply.json();
        assert_eq!(
            (reply.status, &answer["success"], &answer["reason"]),
            (200, &json!(false), &json!(reason)),
            "{operations}: {answer}"
        );
        assert!(answer["error"].is_string());
    }
    server.get("/api/v1/pop/queue/out").await.assert_nothing();
    let done =
        server.post("/api/v1/transaction", format!(r#"{{"operations":[{}]}}"#, ack(&message, true))).await.json();
    assert_eq!(done["success"], true, "the lease was never touched: {done}");
}

#[tokio::test]
async fn nothing_to_do_is_a_fault_of_the_request() {
    let server = TestServer::new().await;
    for body in ["", "{}", r#"{"operations":[]}"#, r#"{"operations":5}"#] {
        assert_eq!(server.post("/api/v1/transaction", body).await.status, 400, "{body}");
    }
}

#[tokio::test]
async fn the_pushes_and_acks_of_all_operations_are_counted_together() {
    let server = TestServer::new().await;
    let operation = |items: usize| {
        let items = vec![r#"{"queue":"out"}"#; items].join(",");
        format!(r#"{{"type":"push","items":[{items}]}}"#)
    };
    let body = |last: usize| format!(r#"{{"operations":[{},{}]}}"#, operation(6000), operation(last));

    let refused = server.post("/api/v1/transaction", body(4001)).await;

    assert_eq!((refused.status, refused.code().as_str()), (400, "invalid_request"));
    assert!(refused.json()["error"].as_str().unwrap().contains("at most 10000"), "{}", refused.body);
    server.get("/api/v1/pop/queue/out").await.assert_nothing();
    let done = server.post("/api/v1/transaction", body(4000)).await.json();
    assert_eq!((&done["success"], done["results"].as_array().unwrap().len()), (&json!(true), 10_000));
}

#[tokio::test]
async fn a_transaction_with_parts_that_are_not_served_is_refused() {
    let server = TestServer::new().await;
    let push = r#"{"type":"push","items":[{"queue":"out","payload":1}]}"#;
    for rider in [
        r#""kv":[{"op":"put","key":"k","value":1}]"#,
        r#""timers":[{"queue":"out","delaySeconds":5}]"#,
        r#""kv":{"put":[]}"#,
        r#""timers":true"#,
    ] {
        let answer = server.post("/api/v1/transaction", format!(r#"{{"operations":[{push}],{rider}}}"#)).await.json();

        assert_eq!(
            (&answer["success"], &answer["reason"]),
            (&json!(false), &json!("bad_request")),
            "{rider}: {answer}"
        );
    }
    server.get("/api/v1/pop/queue/out").await.assert_nothing();
    let body = format!(r#"{{"operations":[{push}],"kv":[],"timers":{{}},"requiredLeases":null}}"#);
    assert_eq!(server.post("/api/v1/transaction", body).await.json()["success"], true, "empty parts are accepted");
}
