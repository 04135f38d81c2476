//! PostgreSQL goes away, and comes back.

use std::sync::Arc;
use std::time::{Duration, Instant};

use reveille::database::{Database, DatabaseOptions};
use reveille::messages::MessagesOptions;
use reveille_embedded::Durability;
use reveille_testkit::{Shutdown, TestCluster, TestDatabase, connect};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::time::sleep;

use crate::support::{Node, PATIENCE, Reply, TestServer, ack, request};

async fn push_until_stored(node: &Node, id: &str) -> Reply {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let body = format!(r#"{{"items":[{{"queue":"q","payload":"{id}","transactionId":"{id}"}}]}}"#);
        let reply = node.post("/api/v1/push", body).await;
        if reply.status == 201 {
            return reply;
        }
        assert_eq!(reply.status, 503, "{}", reply.body);
        assert!(reply.head.contains("retry-after: 1"), "{}", reply.head);
        assert!(Instant::now() < deadline, "still {}", reply.body);
        sleep(Duration::from_millis(50)).await;
    }
}

/// Pops again after every temporary refusal, as clients do, and acks what came.
async fn pop_until_found(node: &Node) -> Vec<Value> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let reply = node.get("/api/v1/pop/queue/q?wait=true&timeout=5000").await;
        if reply.status == 200 {
            return acked(node, &reply).await;
        }
        assert!(matches!(reply.status, 204 | 503), "{}", reply.body);
        assert!(Instant::now() < deadline, "nothing came");
    }
}

/// The payloads of a pop, once its acks are recorded. Repeated acks are harmless, so a refusal is
/// followed by another try.
async fn acked(node: &Node, popped: &Reply) -> Vec<Value> {
    let items: Vec<String> = popped.messages().iter().map(|message| ack(message, "completed")).collect();
    let body = format!(r#"{{"acknowledgments":[{}]}}"#, items.join(","));
    let deadline = Instant::now() + PATIENCE;
    loop {
        let reply = node.post("/api/v1/ack/batch", &body).await;
        if reply.status == 200 {
            let answer = reply.json();
            assert!(answer.as_array().expect("an array").iter().all(|item| item["success"] == true), "{answer}");
            return popped.data();
        }
        assert_eq!(reply.status, 503, "{}", reply.body);
        assert!(Instant::now() < deadline, "still {}", reply.body);
        sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn an_outage_is_reported_and_ends_without_a_restart() {
    let db = TestDatabase::new().await;
    let (proxy, url) = db.proxied().await;
    let node =
        Node::start(&url, |options| options.request_timeout(Duration::from_secs(5)), MessagesOptions::default()).await;
    push_until_stored(&node, "before").await;
    assert_eq!(pop_until_found(&node).await, [json!("before")]);
    let mut parked = node.client().spawn("/api/v1/pop/queue/q?wait=true&timeout=4000");
    node.until_waiting(1).await;

    proxy.refuse();
    proxy.cut();
    let body = r#"{"items":[{"queue":"q","payload":1}]}"#;
    let refused = node.post("/api/v1/push", body).await;
    let parked = parked.reply().await;

    assert_eq!(refused.status, 503, "{}", refused.body);
    assert!(refused.head.contains("retry-after: 1"), "{}", refused.head);
    assert!(matches!(parked.status, 204 | 503), "it waited to its end, or was refused: {}", parked.body);
    assert_eq!(node.get("/livez").await.status, 200);

    proxy.heal();
    push_until_stored(&node, "after").await;
    assert_eq!(pop_until_found(&node).await, [json!("after")]);
}

#[tokio::test]
async fn deadlines_hold_while_the_network_stalls() {
    let db = TestDatabase::new().await;
    let (proxy, url) = db.proxied().await;
    let node = Node::start(&url, |options| options, MessagesOptions::default()).await;
    push_until_stored(&node, "before").await;
    pop_until_found(&node).await;
    let mut early = node.client().spawn("/api/v1/pop/queue/q?wait=true&timeout=2000");
    node.until_waiting(1).await;
    let begun = Instant::now();

    proxy.stall();
    let late = node.get("/api/v1/pop/queue/q?wait=true&timeout=1000").await;
    let early = early.reply().await;

    // Clients hang up five seconds after their deadline; until then they must get an answer.
    for (reply, patience) in [(early, 2), (late, 1)] {
        assert!(matches!(reply.status, 204 | 503), "{patience} s: {}", reply.body);
    }
    assert!(begun.elapsed() < Duration::from_secs(2 + 5), "{:?}", begun.elapsed());
    proxy.heal();
    push_until_stored(&node, "after").await;
    assert_eq!(pop_until_found(&node).await, [json!("after")]);
}

/// The consumers of Queen's Python client try again only if the sentence contains "connection" or
/// "timeout".
#[tokio::test]
async fn an_outage_is_reported_in_words_that_keep_queens_consumers_going() {
    let db = TestDatabase::new().await;
    let (proxy, url) = db.proxied().await;
    let node =
        Node::start(&url, |options| options.request_timeout(Duration::from_secs(3)), MessagesOptions::default()).await;
    push_until_stored(&node, "before").await;

    proxy.refuse();
    proxy.cut();
    let deadline = Instant::now() + PATIENCE;
    let refused = loop {
        let reply = node.get("/api/v1/pop/queue/q?wait=true&timeout=500").await;
        if reply.status == 503 {
            break reply;
        }
        assert!(matches!(reply.status, 200 | 204) && Instant::now() < deadline, "{}", reply.body);
    };

    let sentence = refused.json()["error"].as_str().unwrap_or_default().to_owned();
    assert!(sentence.contains("connection"), "{sentence}");
    assert_eq!(refused.code(), "database_unavailable");
}

#[tokio::test]
async fn a_server_ends_in_time_though_the_database_never_answers() {
    let db = TestDatabase::new().await;
    let (proxy, url) = db.proxied().await;
    let drain = Duration::from_millis(200);
    let mut node = Node::start(&url, |options| options.drain_timeout(drain), MessagesOptions::default()).await;
    push_until_stored(&node, "before").await;
    pop_until_found(&node).await;
    let mut parked = node.client().spawn("/api/v1/pop/queue/q?wait=true&timeout=25000");
    node.until_waiting(1).await;
    proxy.half_open();
    let mut stuck = node.client().connect().await;
    let body = r#"{"items":[{"queue":"q","payload":1}]}"#;
    stuck.write_all(&request("POST", "/api/v1/push", Some(body))).await.unwrap();
    let begun = Instant::now();

    node.shutdown.cancel();

    parked.reply().await.assert_nothing();
    node.ended().await;
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn sessions_that_are_ended_under_parked_polls_lose_nothing() {
    let server = TestServer::new().await;
    server.push("q", "0").await;
    server.get("/api/v1/pop/queue/q?autoAck=true").await.messages();
    let mut parked = server.client().spawn("/api/v1/pop/queue/q?wait=true&timeout=25000");
    server.until_waiting(1).await;
    let admin = connect(&server.db.url().replace(server.db.name(), "postgres")).await;
    let end_all =
        format!("select pg_terminate_backend(pid) from pg_stat_activity where datname = '{}'", server.db.name());

    let mut sent = Vec::new();
    for round in 0..5 {
        admin.batch_execute(&end_all).await.unwrap();
        let id = format!("m{round}");
        push_until_stored(&server, &id).await;
        sent.push(json!(id));
    }

    let first = parked.reply().await;
    let mut got = if first.status == 200 { acked(&server, &first).await } else { Vec::new() };
    while got.len() < sent.len() {
        got.extend(pop_until_found(&server).await);
    }
    assert_eq!(got, sent, "each once, in order");
}

#[tokio::test(flavor = "multi_thread")]
async fn postgresql_restarts_and_crashes_under_parked_polls() {
    let cluster = Arc::new(TestCluster::start(|options| options.durability(Durability::Durable)));
    let url = cluster.url("postgres");
    Database::connect(DatabaseOptions::new(&url)).await.unwrap().migrate().await.unwrap();
    let node = Node::start(&url, |options| options, MessagesOptions::default()).await;
    push_until_stored(&node, "first").await;
    assert_eq!(pop_until_found(&node).await, [json!("first")]);
    for how in [Shutdown::Fast, Shutdown::Kill] {
        let mut parked: Vec<_> =
            (0..5).map(|_| node.client().spawn("/api/v1/pop/queue/q?wait=true&timeout=25000")).collect();
        node.until_waiting(5).await;

        let restarting = Arc::clone(&cluster);
        tokio::task::spawn_blocking(move || restarting.restart(how)).await.unwrap();
        let ids: Vec<String> = (0..5).map(|n| format!("{how:?}-{n}")).collect();
        for id in &ids {
            push_until_stored(&node, id).await;
        }

        let mut got = Vec::new();
        for pending in &mut parked {
            let reply = pending.reply().await;
            assert!(matches!(reply.status, 200 | 204 | 503), "{}", reply.body);
            if reply.status == 200 {
                got.extend(acked(&node, &reply).await);
            }
        }
        while got.len() < ids.len() {
            got.extend(pop_until_found(&node).await);
        }
        got.sort_by_key(ToString::to_string);
        assert_eq!(got, ids.iter().map(|id| json!(id)).collect::<Vec<_>>(), "{how:?}: each once");
    }
}
