//! Clients that go away at any moment, with exact accounting.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::support::{Client, House, PATIENCE, ack, request};

const WAIT: &str = "/api/v1/pop/queue/q?wait=true&timeout=20000";
/// How long a lease may outlive its client here, where much else runs. The promise is 100 ms; the
/// tests print what it was.
const OUTLIVED_MAX: Duration = Duration::from_secs(5);

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

/// The claim is on its way in the database when its client leaves: it comes back to nobody, is
/// given back at once, and the next one has it as if nothing had been.
#[tokio::test]
async fn a_claim_that_finds_its_client_gone_is_given_back_uncharged() {
    let house = House::new().await;
    house.post("/api/v1/configure", r#"{"queue":"q","options":{"leaseTime":600}}"#).await;
    house.push("q", "0").await;
    house.get("/api/v1/pop/queue/q?autoAck=true").await.messages();
    let mut holder = house.db.client().await;
    let mut longest = Duration::ZERO;
    for round in 1..=20 {
        house.push("q", &round.to_string()).await;
        let held = holder.transaction().await.unwrap();
        held.batch_execute("lock table reveille.cursor in access exclusive mode").await.unwrap();
        let gone = house.client().spawn(WAIT);
        house.until_blocked(1).await;

        gone.leave();
        house.until_waiting(0).await;
        let left = Instant::now();
        held.rollback().await.unwrap();
        let given_back = async { while returned(&house).await != round || leased(&house).await > 0 {} };
        timeout(PATIENCE, given_back).await.expect("what nobody waits for is given back");
        longest = longest.max(left.elapsed());

        let popped = house.get(WAIT).await;
        assert_eq!((popped.data(), &popped.messages()[0]["deliveryAttempt"]), (vec![json!(round)], &json!(1)));
        assert_eq!(house.post("/api/v1/ack", ack(&popped.messages()[0], "completed")).await.json()[0]["success"], true);
    }
    eprintln!("the longest lease outlived its client by {longest:?}");
    assert!(longest < OUTLIVED_MAX, "the longest lease outlived its client by {longest:?}");
}

/// Hundreds of clients ask, and leave after a random time: before, while and after something is
/// claimed for them. Every message has a partition of its own, nobody acks, and no lease ends
/// meanwhile. So whatever is leased in the end is what was written to sockets, exactly, and
/// everything else comes to the next one as if nobody had ever had it.
#[tokio::test(flavor = "multi_thread")]
async fn hundreds_of_random_departures_lose_nothing_and_burn_nothing() {
    let house = House::new().await;
    house.post("/api/v1/configure", r#"{"queue":"q","options":{"leaseTime":600}}"#).await;
    let (mut pushed, mut departures) = (0_u64, 0);
    // In a crowd, what was claimed for one who left goes to the next; alone, it goes back.
    for crowd in [20, 1] {
        let enough = CancellationToken::new();
        let mut leavers = JoinSet::new();
        for _ in 0..crowd {
            leavers.spawn(leave_again_and_again(house.client(), enough.clone()));
        }
        let (target, begun) = (pushed + 150, Instant::now());
        // Until departures have met claims often enough for the accounting to mean something.
        while pushed < target || (crowd == 1 && returned(&house).await < 20) {
            assert!(begun.elapsed() < PATIENCE, "only {} departures met a claim", returned(&house).await);
            let body = format!(r#"{{"items":[{{"queue":"q","partition":"p{pushed}","payload":{pushed}}}]}}"#);
            assert_eq!(house.post("/api/v1/push", body).await.status, 201);
            pushed += 1;
        }
        enough.cancel();
        departures += leavers.join_all().await.into_iter().sum::<usize>();
    }
    let left = Instant::now();
    house.until_waiting(0).await;
    // An answer may still be on its way to its socket.
    let written = async || figure(&house, "messages", "popped").await;
    let given_back = async { while leased(&house).await != written().await {} };
    let in_time = timeout(OUTLIVED_MAX, given_back).await;
    let (outlived, written) = (left.elapsed(), written().await);
    eprintln!("{outlived:?} after the last client had left, nothing was leased but what was written");
    let leases = leased(&house).await;
    assert!(in_time.is_ok(), "{written} messages were written, and {leases} are leased, for {outlived:?} by now");

    let rest = pushed - written;
    let left = consume(&house, rest).await;

    assert!(departures >= 200, "{departures} departures");
    assert_eq!(left.len() as u64, rest, "each of the others once");
    assert_eq!(leased(&house).await, written, "what was written is still theirs");
    house.get("/api/v1/pop/queue/q?partitions=1000").await.assert_nothing();
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

/// Consume so many messages, none of which was ever claimed before.
async fn consume(house: &House, messages: u64) -> HashSet<i64> {
    let mut got = HashSet::new();
    while (got.len() as u64) < messages {
        let popped = house.get(&format!("{WAIT}&batch=50&partitions=50")).await.messages();
        let items: Vec<String> = popped.iter().map(|message| ack(message, "completed")).collect();
        let body = format!(r#"{{"acknowledgments":[{}]}}"#, items.join(","));
        let told = house.post("/api/v1/ack/batch", body).await.json();
        for (message, item) in popped.iter().zip(told.as_array().expect("an array")) {
            assert_eq!((&item["success"], &message["deliveryAttempt"]), (&json!(true), &json!(1)), "{message}");
            assert!(got.insert(message["data"].as_i64().expect("a number")), "it came twice: {message}");
        }
    }
    got
}

async fn leased(house: &House) -> u64 {
    let queue = house.get("/api/v1/resources/queues/q").await.json();
    queue["messages"]["leasedPartitions"].as_u64().expect("a number")
}

/// How often a claim was made for a client that had gone, and was given back.
async fn returned(house: &House) -> u64 {
    figure(house, "looks", "leasesReturned").await
}

async fn figure(house: &House, of: &str, name: &str) -> u64 {
    house.get("/api/v1/status").await.json()[of][name].as_u64().expect("a number")
}

/// Up to thirty milliseconds, and often hardly any.
fn a_moment() -> Duration {
    let random = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0_u8);
    Duration::from_micros((random % 30_000) >> (random % 3 * 2))
}
