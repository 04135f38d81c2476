//! Clients that do one thing over and over, each on a connection of its own.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use reveille::uuid::Uuid;
use reveille_testkit::scenario::quantile;
use reveille_testkit::scenario::wire::Wire;
use tokio::sync::Mutex;

use crate::measure::counted;
use crate::popped::{Message, ack, body, messages};
use crate::server::Serving;

/// With its quotes, the payload of every message has a hundred bytes.
const BODY: usize = 98;
/// Partitions of a pop where each has only a few messages.
const WIDE: usize = 10;
const WARMING_MAX: Duration = Duration::from_secs(20);

/// A queue, and how much was pushed to it.
#[derive(Debug, Clone)]
pub(super) struct Queue {
    name: String,
    pub(super) partitions: usize,
    next: Arc<AtomicUsize>,
    pushed: Arc<AtomicUsize>,
    acked: Arc<AtomicUsize>,
}

/// What a client does.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    Push { batch: usize },
    TakeAndAck { batch: usize },
    TakeAcked { batch: usize },
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Push { batch } => write!(f, "push, batch {batch}"),
            Self::TakeAndAck { batch } => write!(f, "pop and ack, batch {batch}"),
            Self::TakeAcked { batch } => write!(f, "pop with auto-ack, batch {batch}"),
        }
    }
}

/// Clients of one server, for one queue.
#[derive(Debug)]
pub(super) struct Load {
    queue: Queue,
    clients: Vec<Mutex<Client>>,
}

#[derive(Debug)]
struct Client {
    wire: Wire,
    took_ms: Vec<f64>,
}

/// What they did.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Measured {
    pub(super) messages: f64,
    pub(super) per_s: f64,
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
    pub(super) server_us: f64,
    pub(super) postgres_us: f64,
}

impl Queue {
    pub(super) fn new(name: &str, partitions: usize) -> Self {
        Self { name: name.to_owned(), partitions, next: Arc::default(), pushed: Arc::default(), acked: Arc::default() }
    }

    /// How many messages the consumers of the plain queue have not acked.
    pub(super) fn backlog(&self) -> usize {
        self.pushed.load(Ordering::Relaxed) - self.acked.load(Ordering::Relaxed)
    }

    /// One call goes to one partition, the next call to the next one.
    fn push_body(&self, batch: usize) -> String {
        let partition = self.next.fetch_add(1, Ordering::Relaxed) % self.partitions;
        self.items(std::iter::repeat_n(partition, batch))
    }

    /// A message for each of the partitions, with a transaction id as official clients make them.
    fn items(&self, partitions: impl ExactSizeIterator<Item = usize>) -> String {
        self.pushed.fetch_add(partitions.len(), Ordering::Relaxed);
        let (name, body) = (&self.name, "x".repeat(BODY));
        let items: Vec<String> = partitions
            .map(|partition| {
                let id = Uuid::now_v7();
                format!(r#"{{"queue":"{name}","partition":"{partition}","transactionId":"{id}","payload":"{body}"}}"#)
            })
            .collect();
        format!(r#"{{"items":[{}]}}"#, items.join(","))
    }
}

impl Load {
    pub(super) async fn new(serving: &Serving, queue: Queue, clients: usize) -> anyhow::Result<Self> {
        let wires = try_join_all((0..clients).map(|_| serving.connect())).await?;
        let clients = wires.into_iter().map(|wire| Mutex::new(Client { wire, took_ms: Vec::new() })).collect();
        Ok(Self { queue, clients })
    }

    /// A message for each, so that no measurement has to make them.
    pub(super) async fn make_partitions(&self) -> anyhow::Result<()> {
        let mut client = self.clients[0].lock().await;
        for first in (0..self.queue.partitions).step_by(1000) {
            let some = first..self.queue.partitions.min(first + 1000);
            let body = self.queue.items(some);
            client.wire.post("/api/v1/push", &body).await?.expect(201)?;
        }
        Ok(())
    }

    /// The first pops of a group make it known in every partition, which may take a while.
    pub(super) async fn warm_up(&self, step: Step) -> anyhow::Result<()> {
        let end = Instant::now() + WARMING_MAX;
        while Instant::now() < end {
            if self.done_within(Duration::from_millis(200), step).await?.0 > 0 {
                return Ok(());
            }
        }
        anyhow::bail!("{step}: nothing was done in {WARMING_MAX:?}")
    }

    /// All clients do it until the time is over.
    pub(super) async fn run(&self, span: Duration, step: Step) -> anyhow::Result<Measured> {
        let (done, per_s, took_ms) = self.done_within(span, step).await?;
        anyhow::ensure!(done > 0, "{step}: nothing was done in {span:?}");
        #[expect(clippy::cast_precision_loss, reason = "three significant digits")]
        let messages = done as f64;
        let (p50_ms, p99_ms) = (quantile(&took_ms, 0.5), quantile(&took_ms, 0.99));
        Ok(Measured { messages, per_s, p50_ms, p99_ms, server_us: 0.0, postgres_us: 0.0 })
    }

    /// How many messages, how many a second, and how long each request took.
    async fn done_within(&self, span: Duration, step: Step) -> anyhow::Result<(usize, f64, Vec<f64>)> {
        let done = AtomicUsize::new(0);
        let per_s = counted(span, self.clients.len(), async |client| {
            let mut client = self.clients[client].lock().await;
            let did = client.once(&self.queue, step).await?;
            done.fetch_add(did, Ordering::Relaxed);
            Ok(did)
        })
        .await?;
        let mut took_ms = Vec::new();
        for client in &self.clients {
            took_ms.append(&mut client.lock().await.took_ms);
        }
        Ok((done.into_inner(), per_s, took_ms))
    }
}

impl Client {
    /// How many messages it was for.
    async fn once(&mut self, queue: &Queue, step: Step) -> anyhow::Result<usize> {
        match step {
            Step::Push { batch } => {
                let body = queue.push_body(batch);
                let began = Instant::now();
                self.wire.post("/api/v1/push", &body).await?.expect(201)?;
                self.note(began);
                Ok(batch)
            }
            Step::TakeAndAck { batch } => {
                let began = Instant::now();
                let answer = body(self.wire.get(&pop_path(queue, batch)).await?)?;
                let messages = messages(&answer)?;
                if messages.is_empty() {
                    return Ok(0);
                }
                let acks: Vec<String> = messages.iter().map(Message::acknowledgement).collect();
                ack(&mut self.wire, &acks).await?;
                queue.acked.fetch_add(acks.len(), Ordering::Relaxed);
                self.note(began);
                Ok(messages.len())
            }
            Step::TakeAcked { batch } => {
                let began = Instant::now();
                let path = format!("{}&consumerGroup=auto&autoAck=true", pop_path(queue, batch));
                let answer = body(self.wire.get(&path).await?)?;
                self.note(began);
                Ok(messages(&answer)?.len())
            }
        }
    }

    fn note(&mut self, began: Instant) {
        self.took_ms.push(began.elapsed().as_secs_f64() * 1000.0);
    }
}

/// The path of a pop that waits for the next messages, as consumers do, but not for long.
fn pop_path(queue: &Queue, batch: usize) -> String {
    let wide = if queue.partitions >= 1000 && batch > 1 { WIDE } else { 1 };
    format!("/api/v1/pop/queue/{}?batch={batch}&partitions={wide}&wait=true&timeout=200", queue.name)
}
