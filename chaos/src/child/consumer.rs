//! Pops, works, and acknowledges.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use tokio::time::sleep;

use super::Kit;
use super::http::Response;
use crate::clock::now;
use crate::history::{Edge, Event, Key, Keys, Outcome, Place, Status};
use crate::layout::{LEASE_S, Manner};

/// How long a pop waits, in milliseconds: shorter than a lease, so that a history shows which of
/// two claims was first.
const WAIT_MS: u64 = 1500;
/// How often an ack without an answer is sent.
const ACK_TRIES: u32 = 8;

#[derive(Debug)]
pub(super) struct Consumer {
    pub(super) queue: String,
    pub(super) group: String,
    pub(super) batch: u32,
    pub(super) partitions: u32,
    pub(super) manner: Manner,
}

#[derive(Debug, Deserialize)]
struct Popped {
    messages: Vec<Message>,
}

/// One message as a pop brings it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Message {
    pub(super) transaction_id: String,
    pub(super) partition_id: String,
    partition: String,
    lease_id: String,
    #[serde(default)]
    delivery_attempt: u32,
    pub(super) data: Payload,
}

#[derive(Debug, Deserialize)]
pub(super) struct Payload {
    pub(super) k: Key,
}

/// The messages of one partition in a pop's answer, and their lease.
#[derive(Debug)]
pub(super) struct PartitionBatch {
    pub(super) place: Place,
    pub(super) lease: String,
    pub(super) messages: Vec<Message>,
}

impl PartitionBatch {
    pub(super) fn keys(&self) -> Keys {
        self.messages.iter().map(|message| message.data.k).collect()
    }
}

/// Some messages of one partition that get the same status, and their items in the call.
struct Ack {
    op: u64,
    keys: Keys,
    items: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct AckAnswer {
    success: bool,
    #[serde(default)]
    noop: bool,
    #[serde(default)]
    error: Option<String>,
}

impl Consumer {
    pub(super) async fn run(&self, kit: &mut Kit) -> anyhow::Result<()> {
        while !kit.control.is_leaving() {
            let batches = self.pop(kit).await;
            if self.manner == Manner::AutoAck || batches.is_empty() {
                continue;
            }
            if self.manner == Manner::Acks && !kit.control.is_brisk() {
                self.work_slowly(kit, &batches[0].lease).await;
            }
            let acks: Vec<Ack> = batches.iter().flat_map(|batch| self.acks_for(kit, batch)).collect();
            acknowledge(kit, acks).await;
        }
        Ok(())
    }

    pub(super) async fn pop(&self, kit: &mut Kit) -> Vec<PartitionBatch> {
        let Self { queue, group, batch, partitions, manner } = self;
        let auto = if *manner == Manner::AutoAck { "&autoAck=true" } else { "" };
        let path = format!(
            "/api/v1/pop/queue/{queue}?consumerGroup={group}&batch={batch}&partitions={partitions}&wait=true&timeout={WAIT_MS}{auto}"
        );
        let began = now();
        let answer = if kit.random.u32(0..60) == 0 && !kit.control.is_brisk() {
            // Some clients hang up at any moment.
            let (kind, target) = ("client-disconnect".to_owned(), group.clone());
            kit.recorder.write(Event::Fault { kind, target, edge: Edge::Begin });
            kit.http.get_for(&path, Duration::from_millis(kit.random.u64(0..300))).await
        } else {
            kit.http.get(&path).await
        };
        let Response::Answered(reply) = answer else { return Vec::new() };
        if reply.status != 200 {
            if reply.status != 204 {
                sleep(Duration::from_millis(kit.random.u64(50..200))).await;
            }
            return Vec::new();
        }
        let batches = by_partition(queue, &reply.body);
        for batch in &batches {
            let attempt = batch.messages[0].delivery_attempt;
            let (place, group, lease) = (batch.place.clone(), group.clone(), batch.lease.clone());
            kit.recorder.write(Event::Delivered { began, place, group, lease, attempt, keys: batch.keys() });
        }
        batches
    }

    /// Sometimes works for longer than a lease, and renews it in time or not at all.
    async fn work_slowly(&self, kit: &mut Kit, lease: &str) {
        let part = Duration::from_millis(LEASE_S * 700);
        match kit.random.u32(0..200) {
            0 => sleep(part * 2).await,
            1..=3 => {
                sleep(part).await;
                let body = format!(r#"{{"seconds":{LEASE_S}}}"#);
                let _ = kit.http.post(&format!("/api/v1/lease/{lease}/extend"), &body).await;
                sleep(part).await;
            }
            _ => {}
        }
    }

    fn acks_for(&self, kit: &mut Kit, batch: &PartitionBatch) -> Vec<Ack> {
        let many = batch.messages.len();
        let stop = kit.random.usize(0..many);
        let bad = match (self.manner, kit.random.u32(0..100)) {
            (Manner::Nacks, 0..12) => Some((Status::Failed, "failed")),
            (Manner::Nacks, 12..20) => Some((Status::Retry, "retry")),
            (Manner::Nacks, 20..23) => Some((Status::Dead, "dlq")),
            _ => None,
        };
        let good = if bad.is_some() { stop } else { many };
        let mut acks = Vec::new();
        if good > 0 {
            acks.push(self.ack(kit, batch, &batch.messages[..good], (Status::Completed, "completed")));
        }
        if let Some(status) = bad {
            acks.push(self.ack(kit, batch, &batch.messages[stop..=stop], status));
        }
        acks
    }

    fn ack(&self, kit: &mut Kit, batch: &PartitionBatch, these: &[Message], (status, text): (Status, &str)) -> Ack {
        let keys: Keys = these.iter().map(|message| message.data.k).collect();
        let op = kit.recorder.settle(&batch.place, &self.group, &batch.lease, (&keys, status));
        let items = these.iter().map(|message| acknowledgement(message, &batch.lease, &self.group, text)).collect();
        Ack { op, keys, items }
    }
}

/// One item of an ack, as JSON.
pub(super) fn acknowledgement(message: &Message, lease: &str, group: &str, status: &str) -> String {
    let Message { transaction_id, partition_id, .. } = message;
    format!(
        r#"{{"transactionId":"{transaction_id}","partitionId":"{partition_id}","leaseId":"{lease}","consumerGroup":"{group}","status":"{status}"}}"#
    )
}

/// The messages of an answer by partition, in their order.
fn by_partition(queue: &str, body: &[u8]) -> Vec<PartitionBatch> {
    let messages = serde_json::from_slice::<Popped>(body).map_or_else(|_| Vec::new(), |popped| popped.messages);
    let mut places: BTreeMap<String, PartitionBatch> = BTreeMap::new();
    for message in messages {
        let (place, lease) = (Place::new(queue, &message.partition), message.lease_id.clone());
        let new = PartitionBatch { place, lease, messages: Vec::new() };
        places.entry(message.partition.clone()).or_insert(new).messages.push(message);
    }
    places.into_values().collect()
}

/// Sends acks until there is an answer, at most [`ACK_TRIES`] times, and records the outcomes.
async fn acknowledge(kit: &mut Kit, acks: Vec<Ack>) {
    let items: Vec<&str> = acks.iter().flat_map(|ack| &ack.items).map(String::as_str).collect();
    let body = format!(r#"{{"acknowledgments":[{}]}}"#, items.join(","));
    let mut outcomes = vec![Outcome::Refused; items.len()];
    for tries in 0..ACK_TRIES {
        let answers = post(kit, &body, items.len()).await;
        // A refusal after an attempt without an answer does not show how that attempt ended.
        let better = |(before, now): (Outcome, Outcome)| match (before, now) {
            (Outcome::Unknown, Outcome::Refused) => Outcome::Unknown,
            (_, now) => now,
        };
        let answered = answers.is_some();
        let answers = answers.unwrap_or_else(|| vec![Outcome::Unknown; items.len()]);
        outcomes = outcomes.into_iter().zip(answers).map(better).collect();
        if answered {
            break;
        }
        sleep(Duration::from_millis(kit.random.u64(20..200) * u64::from(tries + 1))).await;
    }
    let mut outcomes = outcomes.into_iter();
    for Ack { op, keys, items } in acks {
        let these: Vec<(Key, Outcome)> = keys.iter().zip(outcomes.by_ref().take(items.len())).collect();
        for outcome in [Outcome::Ok, Outcome::Again, Outcome::Refused, Outcome::Unknown] {
            let these = these.iter().filter(|(_, it)| *it == outcome).map(|(key, _)| *key);
            kit.recorder.settled(op, these.collect(), outcome);
        }
    }
}

/// One outcome for each item; `None` if the call must be repeated.
async fn post(kit: &mut Kit, body: &str, many: usize) -> Option<Vec<Outcome>> {
    match kit.http.post("/api/v1/ack/batch", body).await {
        Response::Answered(reply) if reply.status == 200 => {
            let answers: Vec<AckAnswer> = serde_json::from_slice(&reply.body).ok()?;
            (answers.len() == many).then(|| answers.iter().map(read).collect())
        }
        Response::Answered(reply) if (400..500).contains(&reply.status) && reply.status != 429 => {
            Some(vec![Outcome::Refused; many])
        }
        Response::NotSent | Response::NoAnswer | Response::Answered(_) => None,
    }
}

/// The sentences of a refusal that is certain; every other failure may have had its effect.
const REFUSALS: [&str; 5] =
    ["invalid or expired lease", "comes again", "already committed", "unresolvable", "Message not found"];

fn read(answer: &AckAnswer) -> Outcome {
    let certain = |error: &String| REFUSALS.iter().any(|refusal| error.starts_with(refusal));
    match answer {
        AckAnswer { success: true, noop: false, .. } => Outcome::Ok,
        AckAnswer { success: true, noop: true, .. } => Outcome::Again,
        AckAnswer { error, .. } if error.as_ref().is_some_and(certain) => Outcome::Refused,
        AckAnswer { .. } => Outcome::Unknown,
    }
}
