//! Over HTTP from a push to the consumer that waits for it.
//!
//! A hundred messages a second go to one queue with two consumer groups, so both see the same
//! messages in the same seconds: in one, a few consumers are parked in long polls; in the other,
//! one polls every 100 ms without waiting. Time begins when the push is sent and ends when the
//! consumer has the message; acks are made and not counted.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use anyhow::Context;
use futures_util::future::try_join_all;
use reveille_testkit::scenario::wire::Wire;
use reveille_testkit::scenario::{Plain, Report, progress, quantile};
use serde_json::json;
use tokio::time::{sleep, sleep_until};

use crate::bench::Bench;
use crate::cluster::Cluster;
use crate::measure::median;
use crate::popped::{Message, ack, body, messages};
use crate::server::Serving;

const QUEUE: &str = "post";
const BETWEEN_PUSHES: Duration = Duration::from_millis(10);
const POLL_EVERY: Duration = Duration::from_millis(100);
const PARTITIONS: usize = 20;
/// A push that is slow must not slow down the next ones.
const PUSHERS: usize = 8;
const CONSUMERS: usize = 4;
/// For what is still on its way when the last push is sent.
const LAST: Duration = Duration::from_secs(5);

pub(crate) async fn run(bench: &Bench) -> anyhow::Result<Report> {
    progress("starting a durable PostgreSQL");
    let cluster = Cluster::start()?;
    let serving = Serving::start(&cluster.url()).await?;
    let admin = Plain::connect(&cluster.url()).await?;
    let version: String = admin.client.query_one("show server_version", &[]).await?.get(0);

    progress("warming up");
    measure(&serving, "warm", bench.pick(50, 300)).await?;
    let messages = bench.pick(1000, 6000);
    progress(&format!("{messages} messages, one every {} ms", BETWEEN_PUSHES.as_millis()));
    let took = measure(&serving, "timed", messages).await?;

    let about = format!(
        "PostgreSQL {version}, fsync on; {} msg/s into {PARTITIONS} partitions, {CONSUMERS} parked consumers, one poller",
        1000 / BETWEEN_PUSHES.as_millis(),
    );
    let mut report = Report::new("delivery", about);
    report.figure("p50_ms", median(&took.parked), "ms");
    report.figure("p99_ms", quantile(&took.parked, 0.99), "ms");
    report.row("the slowest", quantile(&took.parked, 1.0), "ms");
    report.row("the push itself is answered, p50", median(&took.pushes), "ms");
    report.row("the push itself is answered, p99", quantile(&took.pushes, 0.99), "ms");
    report.figure("poller_p50_ms", median(&took.poller), "ms");
    report.row("poller, p99", quantile(&took.poller, 0.99), "ms");
    report.row("a poller waits this many times longer, p50", median(&took.poller) / median(&took.parked), "times");
    Ok(report)
}

/// Milliseconds.
struct Took {
    pushes: Vec<f64>,
    parked: Vec<f64>,
    poller: Vec<f64>,
}

/// Messages by their number, and when each was sent.
struct Sent {
    run: &'static str,
    at: Vec<OnceLock<Instant>>,
    end: Instant,
}

async fn measure(serving: &Serving, run: &'static str, messages: usize) -> anyhow::Result<Took> {
    let span = BETWEEN_PUSHES * u32::try_from(messages)?;
    let sent = Sent { run, at: vec![OnceLock::new(); messages], end: Instant::now() + span + LAST };
    for group in ["parked", "poller"] {
        // Makes the group, so that it begins here and not at what earlier runs left.
        let path = format!("/api/v1/pop/queue/{QUEUE}?consumerGroup={run}-{group}&subscriptionMode=new");
        serving.connect().await?.get(&path).await?.expect(204)?;
    }
    let parked = try_join_all((0..CONSUMERS).map(|_| parked(serving, &sent)));
    let (pushes, parked, poller) = tokio::try_join!(pushes(serving, &sent), parked, poller(serving, &sent))?;
    let took = Took { pushes, parked: parked.concat(), poller };
    anyhow::ensure!(took.parked.len() == messages, "{} of {messages} came to the parked consumers", took.parked.len());
    anyhow::ensure!(took.poller.len() == messages, "{} of {messages} came to the poller", took.poller.len());
    Ok(took)
}

async fn pushes(serving: &Serving, sent: &Sent) -> anyhow::Result<Vec<f64>> {
    let first = tokio::time::Instant::now() + Duration::from_millis(200);
    let pushers = (0..PUSHERS).map(|pusher| async move {
        let mut wire = serving.connect().await?;
        let mut took = Vec::new();
        for (n, at) in sent.at.iter().enumerate().skip(pusher).step_by(PUSHERS) {
            let body = push_body(sent.run, n);
            sleep_until(first + BETWEEN_PUSHES * u32::try_from(n)?).await;
            let began = *at.get_or_init(Instant::now);
            wire.post("/api/v1/push", &body).await?.expect(201)?;
            took.push(began.elapsed().as_secs_f64() * 1000.0);
        }
        anyhow::Ok(took)
    });
    Ok(try_join_all(pushers).await?.concat())
}

fn push_body(run: &str, n: usize) -> String {
    let partition = format!("p{}", n % PARTITIONS);
    let id = format!("{run}-{n}");
    let item = json!({ "queue": QUEUE, "partition": partition, "transactionId": id, "payload": { "n": n } });
    json!({ "items": [item] }).to_string()
}

/// One of the consumers that wait in a long poll.
async fn parked(serving: &Serving, sent: &Sent) -> anyhow::Result<Vec<f64>> {
    let path = format!("/api/v1/pop/queue/{QUEUE}?consumerGroup={}-parked&wait=true&timeout=1000", sent.run);
    let mut wire = serving.connect().await?;
    let mut took = Vec::new();
    while Instant::now() < sent.end {
        took.extend(pop_and_ack(&mut wire, &path, sent).await?);
    }
    Ok(took)
}

/// The consumer that polls now and then, for everything there is.
async fn poller(serving: &Serving, sent: &Sent) -> anyhow::Result<Vec<f64>> {
    let path =
        format!("/api/v1/pop/queue/{QUEUE}?consumerGroup={}-poller&batch=1000&partitions={PARTITIONS}", sent.run);
    let mut wire = serving.connect().await?;
    let mut took = Vec::new();
    while Instant::now() < sent.end {
        took.extend(pop_and_ack(&mut wire, &path, sent).await?);
        sleep(POLL_EVERY).await;
    }
    Ok(took)
}

/// How long each message was on its way.
async fn pop_and_ack(wire: &mut Wire, path: &str, sent: &Sent) -> anyhow::Result<Vec<f64>> {
    let answer = body(wire.get(path).await?)?;
    let now = Instant::now();
    let messages = messages(&answer)?;
    if messages.is_empty() {
        return Ok(Vec::new());
    }
    let acks: Vec<String> = messages.iter().map(Message::acknowledgement).collect();
    ack(wire, &acks).await?;
    messages.iter().map(|message| sent.took(message.transaction_id, now)).collect()
}

impl Sent {
    fn took(&self, id: &str, now: Instant) -> anyhow::Result<f64> {
        let n = id.strip_prefix(self.run).and_then(|rest| rest.strip_prefix('-')?.parse::<usize>().ok());
        let at = n.and_then(|n| self.at.get(n)?.get()).with_context(|| format!("{id} was not sent"))?;
        Ok(now.saturating_duration_since(*at).as_secs_f64() * 1000.0)
    }
}
