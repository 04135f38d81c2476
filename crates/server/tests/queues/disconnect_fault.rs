//! Clients that go away at any moment, with exact accounting.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::time::sleep;

use crate::support::{House, ack, request};

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

/// Hundreds of clients ask, and leave after a random time: before, while and after they are answered. What was written to a
/// client that had gone is the only thing that may come twice, and only as often as that happened.
#[tokio::test(flavor = "multi_thread")]
async fn hundreds_of_random_departures_lose_nothing_and_burn_nothing() {
    const MESSAGES: usize = 200;
    const LEAVERS: usize = 400;
    let house = House::new().await;
    house.post("/api/v1/configure", r#"{"queue":"q","options":{"leaseTime":2}}"#).await;
    let leavers = async {
        for _ in 0..LEAVERS {
            let mut stream = house.client().connect().await;
            stream.write_all(&request("GET", WAIT, None)).await.unwrap();
            sleep(Duration::from_micros(a_moment_us())).await;
            drop(stream);
        }
    };
    let pushes = async {
        for n in 0..MESSAGES {
            let body = format!(r#"{{"items":[{{"queue":"q","partition":"p{}","payload":{n}}}]}}"#, n % 50);
            assert_eq!(house.post("/api/v1/push", body).await.status, 201);
        }
    };
    tokio::join!(leavers, pushes);
    let written_to_leavers = house.get("/api/v1/status").await.json()["messages"]["popped"].as_u64().unwrap();

    let mut got: HashMap<i64, usize> = HashMap::new();
    let mut again = 0;
    while got.len() < MESSAGES {
        let popped = house.get(&format!("{WAIT}&batch=50&partitions=50")).await;
        let messages = popped.messages();
        again += messages.iter().filter(|message| message["deliveryAttempt"].as_i64() > Some(1)).count();
        let items: Vec<String> = messages.iter().map(|message| ack(message, "completed")).collect();
        let told =
            house.post("/api/v1/ack/batch", format!(r#"{{"acknowledgments":[{}]}}"#, items.join(","))).await.json();
        for (message, item) in messages.iter().zip(told.as_array().unwrap()) {
            // A lease of two seconds may end under a slow test; then the message comes once more.
            if item["success"] == true {
                *got.entry(message["data"].as_i64().unwrap()).or_default() += 1;
            }
        }
    }

    assert!(got.values().all(|times| *times == 1), "each is settled once");
    assert!(
        again as u64 <= written_to_leavers + settled_late(&house).await,
        "{again} came again, and {written_to_leavers} were written to clients that had gone"
    );
    house.get("/api/v1/pop/queue/q").await.assert_nothing();
}

/// Acks that came after their lease's end.
async fn settled_late(house: &House) -> u64 {
    let status: Value = house.get("/api/v1/status").await.json();
    status["messages"]["ackFailed"].as_u64().expect("a number")
}

/// Up to five milliseconds, and often hardly any.
fn a_moment_us() -> u64 {
    let random = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0_u8);
    (random % 5000) >> (random % 3 * 2)
}
