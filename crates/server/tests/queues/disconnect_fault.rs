//! Clients that leave at any moment, with exact accounting.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::support::{Client, PATIENCE, TestServer, ack, request};

const WAIT: &str = "/api/v1/pop/queue/q?wait=true&timeout=20000";
/// How long a lease may outlive its client here, beside other tests. The promise is 100 ms; the
/// tests print the measured time.
const OUTLIVED_MAX: Duration = Duration::from_secs(5);

#[tokio::test]
async fn a_client_that_left_before_the_push_costs_nothing() {
    let server = TestServer::new().await;
    let gone = server.client().spawn(WAIT);
    server.until_waiting(1).await;

    gone.leave();
    server.until_waiting(0).await;
    server.push("q", "1").await;

    let popped = server.get("/api/v1/pop/queue/q").await;
    assert_eq!((popped.data(), &popped.messages()[0]["deliveryAttempt"]), (vec![json!(1)], &json!(1)));
}

/// The claim runs in the database when its client leaves. The lost claim is given back at once, and
/// the next consumer gets the message with its first delivery.
#[tokio::test]
async fn a_claim_that_finds_its_client_gone_is_given_back_uncharged() {
    let server = TestServer::new().await;
    server.post("/api/v1/configure", r#"{"queue":"q","options":{"leaseTime":600}}"#).await;
    server.push("q", "0").await;
    server.get("/api/v1/pop/queue/q?autoAck=true").await.messages();
    let mut holder = server.db.client().await;
    let mut longest = Duration::ZERO;
    for round in 1..=20 {
        server.push("q", &round.to_string()).await;
        let held = holder.transaction().await.unwrap();
        held.batch_execute("lock table reveille.cursor in access exclusive mode").await.unwrap();
        let gone = server.client().spawn(WAIT);
        server.until_blocked(1).await;

        gone.leave();
        server.until_waiting(0).await;
        let left = Instant::now();
        held.rollback().await.unwrap();
        let given_back = async { while returned(&server).await != round || leased(&server).await > 0 {} };
        timeout(PATIENCE, given_back).await.expect("the lost claim is given back");
        longest = longest.max(left.elapsed());

        let popped = server.get(WAIT).await;
        assert_eq!((popped.data(), &popped.messages()[0]["deliveryAttempt"]), (vec![json!(round)], &json!(1)));
        assert_eq!(
            server.post("/api/v1/ack", ack(&popped.messages()[0], "completed")).await.json()[0]["success"],
            true
        );
    }
    eprintln!("the longest lease outlived its client by {longest:?}");
    assert!(longest < OUTLIVED_MAX, "the longest lease outlived its client by {longest:?}");
}

/// Hundreds of clients pop, and leave after a random time: before, while and after a message is
/// claimed for them. Every message has a partition of its own, no client acks, and no lease ends
/// meanwhile. So in the end exactly the messages that were written to sockets are leased, and every
/// other message comes to the next consumer with its first delivery.
#[tokio::test(flavor = "multi_thread")]
async fn hundreds_of_random_departures_lose_nothing_and_burn_nothing() {
    let server = TestServer::new().await;
    server.post("/api/v1/configure", r#"{"queue":"q","options":{"leaseTime":600}}"#).await;
    let (mut pushed, mut departures) = (0_u64, 0);
    // Among many clients a lost claim goes to the next one; with a single client it is given back.
    for crowd in [20, 1] {
        let enough = CancellationToken::new();
        let mut leavers = JoinSet::new();
        for _ in 0..crowd {
            leavers.spawn(leave_again_and_again(server.client(), enough.clone()));
        }
        let (target, begun) = (pushed + 150, Instant::now());
        // Until departures have met claims often enough for the accounting to mean something.
        while pushed < target || (crowd == 1 && returned(&server).await < 20) {
            assert!(begun.elapsed() < PATIENCE, "only {} departures met a claim", returned(&server).await);
            let body = format!(r#"{{"items":[{{"queue":"q","partition":"p{pushed}","payload":{pushed}}}]}}"#);
            assert_eq!(server.post("/api/v1/push", body).await.status, 201);
            pushed += 1;
        }
        enough.cancel();
        departures += leavers.join_all().await.into_iter().sum::<usize>();
    }
    let left = Instant::now();
    server.until_waiting(0).await;
    // An answer may not have reached its socket yet.
    let written = async || figure(&server, "messages", "popped").await;
    let given_back = async { while leased(&server).await != written().await {} };
    let in_time = timeout(OUTLIVED_MAX, given_back).await;
    let (outlived, written) = (left.elapsed(), written().await);
    eprintln!("{outlived:?} after the last client had left, only the written messages were leased");
    let leases = leased(&server).await;
    assert!(in_time.is_ok(), "{written} messages were written, and {leases} are leased, for {outlived:?} by now");

    let rest = pushed - written;
    let left = consume(&server, rest).await;

    assert!(departures >= 200, "{departures} departures");
    assert_eq!(left.len() as u64, rest, "each of the other messages once");
    assert_eq!(leased(&server).await, written, "the written messages are still leased");
    server.get("/api/v1/pop/queue/q?partitions=1000").await.assert_nothing();
}

async fn leave_again_and_again(client: Client, enough: CancellationToken) -> usize {
    let mut departures = 0;
    while !enough.is_cancelled() {
        let mut stream = client.connect().await;
        stream.write_all(&request("GET", WAIT, None)).await.expect("the server takes a request");
        sleep(a_moment()).await;
        drop(stream);
        departures += 1;
    }
    departures
}

/// Consumes so many messages and checks that each has its first delivery.
async fn consume(server: &TestServer, messages: u64) -> HashSet<i64> {
    let mut got = HashSet::new();
    while (got.len() as u64) < messages {
        let popped = server.get(&format!("{WAIT}&batch=50&partitions=50")).await.messages();
        let items: Vec<String> = popped.iter().map(|message| ack(message, "completed")).collect();
        let body = format!(r#"{{"acknowledgments":[{}]}}"#, items.join(","));
        let answer = server.post("/api/v1/ack/batch", body).await.json();
        for (message, item) in popped.iter().zip(answer.as_array().expect("an array")) {
            assert_eq!((&item["success"], &message["deliveryAttempt"]), (&json!(true), &json!(1)), "{message}");
            assert!(got.insert(message["data"].as_i64().expect("a number")), "it came twice: {message}");
        }
    }
    got
}

async fn leased(server: &TestServer) -> u64 {
    let queue = server.get("/api/v1/resources/queues/q").await.json();
    queue["messages"]["leasedPartitions"].as_u64().expect("a number")
}

/// How many lost claims were given back.
async fn returned(server: &TestServer) -> u64 {
    figure(server, "looks", "leasesReturned").await
}

async fn figure(server: &TestServer, of: &str, name: &str) -> u64 {
    server.get("/api/v1/status").await.json()[of][name].as_u64().expect("a number")
}

/// Up to thirty milliseconds, often much less.
fn a_moment() -> Duration {
    let random = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0_u8);
    Duration::from_micros((random % 30_000) >> (random % 3 * 2))
}
