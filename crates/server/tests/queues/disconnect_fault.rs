//! Clients that go away at any moment, with exact accounting.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::support::{Client, House, PATIENCE, ack, request};

const WAIT: &str = "/api/v1/pop/queue/q?wait=true&timeout=20000";

#[tokio::test]
async fn a_client_that_left_before_the_push_costs_nothing() {
    let house = House::new().await;
    let gone = house.client().spawn(WAIT);
    house.until_waiting(1).await;

    gone.leave();
    house.until_waiting(0).await;
    house.push("q", "1").await;

    let popped = house.get("/api/v1/pop/queue/q").await;
    assert_eq!((popped.data(), &popped.messages()[0]["deliveryAttempt"]), (vec![json!(1)], &json!(1)));
}

/// Hundreds of clients ask, and leave after a random time: before, while and after something is claimed for them. What was
/// written to a client that had gone is the only thing that may come twice, and only as often as that happened.
#[tokio::test(flavor = "multi_thread")]
async fn hundreds_of_random_departures_lose_nothing_and_burn_nothing() {
    let house = House::new().await;
    house.post("/api/v1/configure", r#"{"queue":"q","options":{"leaseTime":2}}"#).await;
    let enough = CancellationToken::new();
    let mut leavers = JoinSet::new();
    for _ in 0..20 {
        leavers.spawn(leave_again_and_again(house.client(), enough.clone()));
    }
    let mut pushed = 0;
    let begun = Instant::now();
    // Until departures have met claims often enough for the accounting to mean something.
    while pushed < 200 || met(&house).await < 30 {
        assert!(begun.elapsed() < PATIENCE, "only {} departures met a claim", met(&house).await);
        let body = format!(r#"{{"items":[{{"queue":"q","partition":"p{}","payload":{pushed}}}]}}"#, pushed % 50);
        assert_eq!(house.post("/api/v1/push", body).await.status, 201);
        pushed += 1;
    }
    enough.cancel();
    let departures: usize = leavers.join_all().await.into_iter().sum();
    house.until_waiting(0).await;
    let written = figure(&house, "messages", "popped").await;

    let (got, extra_claims) = consume(&house, pushed).await;

    assert!(departures >= 200, "{departures} departures");
    assert!(got.values().all(|times| *times == 1), "each is settled once");
    let late = figure(&house, "messages", "ackFailed").await;
    assert!(
        extra_claims <= written + late,
        "{extra_claims} claims were charged for nothing: {written} were written to clients that had gone, {late} acked late"
    );
    house.get("/api/v1/pop/queue/q").await.assert_nothing();
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

/// Consume everything, as often as it takes. How often each message was settled, and how many claims before the last were
/// counted against it.
async fn consume(house: &House, messages: usize) -> (HashMap<i64, usize>, u64) {
    let mut got: HashMap<i64, usize> = HashMap::new();
    let mut extra_claims = 0;
    while got.len() < messages {
        let popped = house.get(&format!("{WAIT}&batch=50&partitions=50")).await.messages();
        let attempts: HashMap<&Value, u64> = popped
            .iter()
            .map(|message| (&message["partition"], message["deliveryAttempt"].as_u64().unwrap_or(0)))
            .collect();
        extra_claims += attempts.values().map(|attempt| attempt - 1).sum::<u64>();
        let items: Vec<String> = popped.iter().map(|message| ack(message, "completed")).collect();
        let body = format!(r#"{{"acknowledgments":[{}]}}"#, items.join(","));
        let told = house.post("/api/v1/ack/batch", body).await.json();
        for (message, item) in popped.iter().zip(told.as_array().expect("an array")) {
            // A lease of two seconds may end under a slow test; then the message comes once more.
            if item["success"] == true {
                *got.entry(message["data"].as_i64().expect("a number")).or_default() += 1;
            }
        }
    }
    (got, extra_claims)
}

/// How often a claim was made for a client that had gone, or was going.
async fn met(house: &House) -> u64 {
    figure(house, "messages", "popped").await + figure(house, "looks", "leasesReturned").await
}

async fn figure(house: &House, of: &str, name: &str) -> u64 {
    house.get("/api/v1/status").await.json()[of][name].as_u64().expect("a number")
}

/// Up to thirty milliseconds, and often hardly any.
fn a_moment() -> Duration {
    let random = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0_u8);
    Duration::from_micros((random % 30_000) >> (random % 3 * 2))
}
