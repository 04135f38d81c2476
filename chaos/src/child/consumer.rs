//! Pops, works, and says what became of it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use tokio::time::sleep;

use super::Kit;
use super::door::Asked;
use crate::clock::now;
use crate::history::{Edge, Event, Key, Keys, Outcome, Place, Word};
use crate::layout::{LEASE_S, Manner};

/// How long a pop waits, in milliseconds: shorter than a lease, so that histories tell which of two
/// claims was first.
const WAIT_MS: u64 = 1500;
/// How often an ack without an answer is said again.
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

/// What one partition brought.
#[derive(Debug)]
pub(super) struct Handful {
    pub(super) place: Place,
    pub(super) lease: String,
    pub(super) messages: Vec<Message>,
}

impl Handful {
    pub(super) fn keys(&self) -> Keys {
        self.messages.iter().map(|message| message.data.k).collect()
    }
}

/// Something said of some messages of one partition, and the items of the call that say it.
struct Said {
    op: u64,
    keys: Keys,
    items: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Told {
    success: bool,
    #[serde(default)]
    noop: bool,
    #[serde(default)]
    error: Option<String>,
}

impl Consumer {
    pub(super) async fn run(&self, kit: &mut Kit) -> anyhow::Result<()> {
        while !kit.mood.is_leaving() {
            let handfuls = self.pop(kit).await;
            if self.manner == Manner::AutoAck || handfuls.is_empty() {
                continue;
            }
            if self.manner == Manner::Acks && !kit.mood.is_brisk() {
                self.dawdle(kit, &handfuls[0].lease).await;
            }
            let said: Vec<Said> = handfuls.iter().flat_map(|handful| self.judge(kit, handful)).collect();
            say(kit, said).await;
        }
        Ok(())
    }

    pub(super) async fn pop(&self, kit: &mut Kit) -> Vec<Handful> {
        let Self { queue, group, batch, partitions, manner } = self;
        let auto = if *manner == Manner::AutoAck { "&autoAck=true" } else { "" };
        let path = format!(
            "/api/v1/pop/queue/{queue}?consumerGroup={group}&batch={batch}&partitions={partitions}&wait=true&timeout={WAIT_MS}{auto}"
        );
        let asked = now();
        let answer = if kit.random.u32(0..60) == 0 && !kit.mood.is_brisk() {
            // Some clients hang up whenever they like.
            let (kind, target) = ("client-disconnect".to_owned(), group.clone());
            kit.pen.write(Event::Fault { kind, target, edge: Edge::Begin });
            kit.door.get_for(&path, Duration::from_millis(kit.random.u64(0..300))).await
        } else {
            kit.door.get(&path).await
        };
        let Asked::Answered(reply) = answer else { return Vec::new() };
        if reply.status != 200 {
            if reply.status != 204 {
                sleep(Duration::from_millis(kit.random.u64(50..200))).await;
            }
            return Vec::new();
        }
        let handfuls = handfuls(queue, &reply.body);
        for handful in &handfuls {
            let attempt = handful.messages[0].delivery_attempt;
            let (place, group, lease) = (handful.place.clone(), group.clone(), handful.lease.clone());
            kit.pen.write(Event::Delivered { asked, place, group, lease, attempt, keys: handful.keys() });
        }
        handfuls
    }

    /// Some work is slow: renewed in time, or not at all.
    async fn dawdle(&self, kit: &mut Kit, lease: &str) {
        let part = Duration::from_millis(LEASE_S * 700);
        match kit.random.u32(0..200) {
            0 => sleep(part * 2).await,
            1..=3 => {
                sleep(part).await;
                let body = format!(r#"{{"seconds":{LEASE_S}}}"#);
                let _ = kit.door.post(&format!("/api/v1/lease/{lease}/extend"), &body).await;
                sleep(part).await;
            }
            _ => {}
        }
    }

    fn judge(&self, kit: &mut Kit, handful: &Handful) -> Vec<Said> {
        let many = handful.messages.len();
        let stop = kit.random.usize(0..many);
        let bad = match (self.manner, kit.random.u32(0..100)) {
            (Manner::Nacks, 0..12) => Some((Word::Failed, "failed")),
            (Manner::Nacks, 12..20) => Some((Word::Retry, "retry")),
            (Manner::Nacks, 20..23) => Some((Word::Dead, "dlq")),
            _ => None,
        };
        let good = if bad.is_some() { stop } else { many };
        let mut said = Vec::new();
        if good > 0 {
            said.push(self.said(kit, handful, &handful.messages[..good], (Word::Completed, "completed")));
        }
        if let Some(word) = bad {
            said.push(self.said(kit, handful, &handful.messages[stop..=stop], word));
        }
        said
    }

    fn said(&self, kit: &mut Kit, handful: &Handful, these: &[Message], (word, status): (Word, &str)) -> Said {
        let keys: Keys = these.iter().map(|message| message.data.k).collect();
        let op = kit.pen.settle(&handful.place, &self.group, &handful.lease, (&keys, word));
        let items = these.iter().map(|message| acknowledgement(message, &handful.lease, &self.group, status)).collect();
        Said { op, keys, items }
    }
}

/// What is said of a message, as it is spelt.
pub(super) fn acknowledgement(message: &Message, lease: &str, group: &str, status: &str) -> String {
    let Message { transaction_id, partition_id, .. } = message;
    format!(
        r#"{{"transactionId":"{transaction_id}","partitionId":"{partition_id}","leaseId":"{lease}","consumerGroup":"{group}","status":"{status}"}}"#
    )
}

/// The messages of an answer by partition, in their order.
fn handfuls(queue: &str, body: &[u8]) -> Vec<Handful> {
    let messages = serde_json::from_slice::<Popped>(body).map_or_else(|_| Vec::new(), |popped| popped.messages);
    let mut places: BTreeMap<String, Handful> = BTreeMap::new();
    for message in messages {
        let (place, lease) = (Place::new(queue, &message.partition), message.lease_id.clone());
        let new = Handful { place, lease, messages: Vec::new() };
        places.entry(message.partition.clone()).or_insert(new).messages.push(message);
    }
    places.into_values().collect()
}

/// Says it until there is an answer, within reason, and writes down what became of it.
async fn say(kit: &mut Kit, said: Vec<Said>) {
    let items: Vec<&str> = said.iter().flat_map(|said| &said.items).map(String::as_str).collect();
    let body = format!(r#"{{"acknowledgments":[{}]}}"#, items.join(","));
    let mut outcomes = vec![Outcome::Refused; items.len()];
    for tries in 0..ACK_TRIES {
        let answers = ask(kit, &body, items.len()).await;
        // A refusal after an attempt whose end nobody knows tells nothing about that attempt.
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
    for Said { op, keys, items } in said {
        let these: Vec<(Key, Outcome)> = keys.iter().zip(outcomes.by_ref().take(items.len())).collect();
        for outcome in [Outcome::Ok, Outcome::Again, Outcome::Refused, Outcome::Unknown] {
            let these = these.iter().filter(|(_, it)| *it == outcome).map(|(key, _)| *key);
            kit.pen.settled(op, these.collect(), outcome);
        }
    }
}

/// One answer for each item; `None` if there was no answer to speak of.
async fn ask(kit: &mut Kit, body: &str, many: usize) -> Option<Vec<Outcome>> {
    match kit.door.post("/api/v1/ack/batch", body).await {
        Asked::Answered(reply) if reply.status == 200 => {
            let told: Vec<Told> = serde_json::from_slice(&reply.body).ok()?;
            (told.len() == many).then(|| told.iter().map(read).collect())
        }
        Asked::Answered(reply) if (400..500).contains(&reply.status) && reply.status != 429 => {
            Some(vec![Outcome::Refused; many])
        }
        Asked::NotSent | Asked::NoAnswer | Asked::Answered(_) => None,
    }
}

/// The sentences of a refusal that is certain; every other failure may have had its effect.
const REFUSALS: [&str; 5] =
    ["invalid or expired lease", "comes again", "already committed", "unresolvable", "Message not found"];

fn read(told: &Told) -> Outcome {
    let certain = |error: &String| REFUSALS.iter().any(|refusal| error.starts_with(refusal));
    match told {
        Told { success: true, noop: false, .. } => Outcome::Ok,
        Told { success: true, noop: true, .. } => Outcome::Again,
        Told { error, .. } if error.as_ref().is_some_and(certain) => Outcome::Refused,
        Told { .. } => Outcome::Unknown,
    }
}
