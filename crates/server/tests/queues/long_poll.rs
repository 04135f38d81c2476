//! Pops that wait, on one node.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{TestServer, ack};

const WAIT: &str = "wait=true&timeout=25000";

#[tokio::test]
async fn a_push_answers_a_parked_pop_on_each_route() {
    let server = TestServer::new().await;
    server.push("shop.mail", "0").await;
    let drained = server.get("/api/v1/pop/queue/shop.mail?autoAck=true").await;
    assert_eq!(drained.data(), [json!(0)]);
    for path in [
        "/api/v1/pop/queue/shop.mail",
        "/api/v1/pop/queue/shop.mail/partition/Default",
        "/api/v1/pop/queue/shop.mail/partition/Unheard-of",
        "/api/v1/pop?namespace=shop",
        "/api/v1/pop?task=mail",
        "/api/v1/pop/queue/shop.unheard-of",
    ] {
        let (path, parameters) =
            path.split_once('?').map_or((path, String::new()), |(path, rest)| (path, format!("{rest}&")));
        let mut parked = server.client().spawn(&format!("{path}?{parameters}{WAIT}&autoAck=true"));
        server.until_waiting(1).await;

        let queue = if path.ends_with("unheard-of") { "shop.unheard-of" } else { "shop.mail" };
        let partition = if path.ends_with("Unheard-of") { "Unheard-of" } else { "Default" };
        let body = format!(r#"{{"items":[{{"queue":"{queue}","partition":"{partition}","payload":"{path}"}}]}}"#);
        server.post("/api/v1/push", body).await;

        assert_eq!(parked.reply().await.data(), [json!(path)], "{path}");
    }
}

#[tokio::test]
async fn the_deadline_is_answered_with_nothing_not_early_and_not_late() {
    let server = TestServer::new().await;
    server.push("q", "1").await;
    server.get("/api/v1/pop/queue/q").await.messages();
    let begun = Instant::now();

    let reply = server.get("/api/v1/pop/queue/q?wait=true&timeout=700").await;

    reply.assert_nothing();
    let took = begun.elapsed();
    assert!(took >= Duration::from_millis(690) && took < Duration::from_secs(5), "{took:?}");
}

#[tokio::test]
async fn a_poll_waits_no_longer_than_the_server_lets_it() {
    let server = TestServer::with(|options| options.max_poll_timeout(Duration::from_millis(300))).await;
    let begun = Instant::now();

    server.get("/api/v1/pop/queue/q?wait=true&timeout=4294967295").await.assert_nothing();

    assert!(begun.elapsed() >= Duration::from_millis(300), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn every_waiter_has_a_deadline_of_its_own() {
    let server = TestServer::new().await;
    let waiters = (0..100_u64).map(|n| {
        let patience = Duration::from_millis(200 + n * 7);
        let path = format!("/api/v1/pop/queue/q{}?wait=true&timeout={}", n % 7, patience.as_millis());
        let client = server.client();
        async move {
            let begun = Instant::now();
            client.ask("GET", &path, None).await.assert_nothing();
            (patience, begun.elapsed())
        }
    });
    let waiters: tokio::task::JoinSet<_> = waiters.collect();

    for (patience, took) in waiters.join_all().await {
        assert!(took >= patience && took < patience + Duration::from_secs(5), "{took:?} instead of {patience:?}");
    }
    server.until_waiting(0).await;
}

#[tokio::test]
async fn one_push_answers_one_of_many_and_the_rest_keep_waiting() {
    let server = TestServer::new().await;
    let mut parked: Vec<_> =
        (0..20).map(|_| server.client().spawn(&format!("/api/v1/pop/queue/q?{WAIT}&autoAck=true"))).collect();
    server.until_waiting(20).await;

    server.push("q", "1").await;
    server.until_waiting(19).await;

    let rest: Vec<String> = (2..=20).map(|n| format!(r#"{{"queue":"q","partition":"p{n}","payload":{n}}}"#)).collect();
    server.post("/api/v1/push", format!(r#"{{"items":[{}]}}"#, rest.join(","))).await;
    let mut got = Vec::new();
    for pending in &mut parked {
        got.extend(pending.reply().await.data());
    }
    got.sort_by_key(serde_json::Value::as_i64);
    assert_eq!(got, (1..=20).map(|n| json!(n)).collect::<Vec<_>>(), "none lost, none twice");
}

#[tokio::test]
async fn an_ack_a_nack_a_lease_end_and_a_seek_answer_a_pop_that_waits_for_the_partition() {
    let server = TestServer::new().await;
    server.push("q", "1").await;
    server.push("q", "2").await;
    let waiting = format!("/api/v1/pop/queue/q?{WAIT}");
    let mut held = server.get("/api/v1/pop/queue/q").await.messages()[0].clone();

    for (status, expected) in [("failed", 1), ("retry", 1), ("completed", 2)] {
        let mut parked = server.client().spawn(&waiting);
        server.until_waiting(1).await;
        server.post("/api/v1/ack", ack(&held, status)).await;
        held = parked.reply().await.messages()[0].clone();
        assert_eq!(held["data"], json!(expected), "{status}");
    }
    let mut parked = server.client().spawn(&waiting);
    server.until_waiting(1).await;
    server.post("/api/v1/consumer-groups/__QUEUE_MODE__/queues/q/seek", r#"{"timestamp":"2020-01-01"}"#).await;
    assert_eq!(parked.reply().await.data(), [json!(1)]);

    server.post("/api/v1/configure", r#"{"queue":"short","options":{"leaseTime":1}}"#).await;
    server.push("short", "7").await;
    server.get("/api/v1/pop/queue/short").await.messages();
    let again = server.get(&format!("/api/v1/pop/queue/short?{WAIT}")).await;
    assert_eq!(again.data(), [json!(7)]);
    assert_eq!(again.messages()[0]["deliveryAttempt"], 2);
}

#[tokio::test]
async fn groups_and_partitions_are_waited_for_apart() {
    let server = TestServer::new().await;
    let path = |place: &str| format!("/api/v1/pop/queue/q{place}{WAIT}&autoAck=true");
    let mut mine = server.client().spawn(&path("?consumerGroup=mine&"));
    let mut yours = server.client().spawn(&path("?consumerGroup=yours&"));
    let mut elsewhere = server.client().spawn(&path("/partition/elsewhere?"));
    server.until_waiting(3).await;

    server.push("q", "1").await;

    assert_eq!(mine.reply().await.data(), [json!(1)]);
    assert_eq!(yours.reply().await.data(), [json!(1)], "each group sees every message");
    server.until_waiting(1).await;
    server.post("/api/v1/push", r#"{"items":[{"queue":"q","partition":"elsewhere","payload":2}]}"#).await;
    assert_eq!(elsewhere.reply().await.data(), [json!(2)]);
}

#[tokio::test]
async fn messages_that_become_due_answer_waiting_pops() {
    let server = TestServer::new().await;
    server.post("/api/v1/configure", r#"{"queue":"late","options":{"delayedProcessing":1}}"#).await;
    server.post("/api/v1/configure", r#"{"queue":"calm","options":{"windowBuffer":1}}"#).await;
    for queue in ["late", "calm"] {
        server.push(queue, "1").await;
        server.get(&format!("/api/v1/pop/queue/{queue}")).await.assert_nothing();

        assert_eq!(server.get(&format!("/api/v1/pop/queue/{queue}?{WAIT}")).await.data(), [json!(1)]);
    }
}

#[tokio::test]
async fn waiting_pops_and_immediate_pops_share_a_server() {
    let server = TestServer::new().await;
    let mut parked = server.client().spawn(&format!("/api/v1/pop/queue/a?{WAIT}"));
    server.until_waiting(1).await;

    for n in 0..20 {
        server.push("b", &n.to_string()).await;
        assert_eq!(server.get("/api/v1/pop/queue/b?autoAck=true").await.data(), [json!(n)]);
        server.get("/api/v1/pop/queue/a").await.assert_nothing();
    }
    server.push("a", "1").await;

    assert_eq!(parked.reply().await.data(), [json!(1)]);
}
