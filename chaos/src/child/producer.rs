//! Pushes over HTTP.

use std::fmt::Write;
use std::time::Duration;

use serde::Deserialize;
use tokio::time::{Instant, sleep};

use super::Kit;
use super::http::Response;
use crate::history::{Key, Keys, Outcome, Place};
use crate::layout::PushManner;

#[derive(Debug)]
pub(super) struct Producer {
    pub(super) queue: String,
    pub(super) partitions: u32,
    pub(super) batch: u32,
    pub(super) rate: u32,
    pub(super) manner: PushManner,
}

#[derive(Debug, Deserialize)]
struct PushAnswer {
    status: String,
}

impl Producer {
    pub(super) async fn run(&self, kit: &mut Kit) -> anyhow::Result<()> {
        while !kit.control.is_leaving() {
            kit.control.while_held().await;
            let began = Instant::now();
            let many = kit.random.u32(1..self.batch.max(1) * 2);
            let partition = kit.random.u32(0..self.partitions);
            self.push(kit, &Place::new(&self.queue, format!("p{partition}")), many).await;
            let due = Duration::from_secs_f64(f64::from(many) / f64::from(self.rate.max(1)));
            sleep(due.saturating_sub(began.elapsed())).await;
        }
        Ok(())
    }

    async fn push(&self, kit: &mut Kit, place: &Place, many: u32) {
        let keys = kit.recorder.new_keys(many);
        let body = body(place, &keys, self.manner);
        let op = kit.recorder.push(place, &keys);
        let mut outcomes = self.post(kit, &body, keys.len()).await;
        let mut tries = 0;
        while self.manner == PushManner::Repeat && unknown(&outcomes) && tries < 20 && !kit.control.is_leaving() {
            tries += 1;
            sleep(Duration::from_millis(kit.random.u64(20..300))).await;
            let again = self.post(kit, &body, keys.len()).await;
            // What was unknown once and is refused now may have been stored all the same.
            let better = |(old, new)| if old == Outcome::Unknown && new == Outcome::Refused { old } else { new };
            outcomes = outcomes.into_iter().zip(again).map(better).collect();
        }
        for outcome in [Outcome::Ok, Outcome::Refused, Outcome::Unknown] {
            let these = keys.iter().zip(&outcomes).filter(|(_, it)| **it == outcome).map(|(key, _)| key);
            kit.recorder.pushed(op, these.collect(), outcome);
        }
    }

    async fn post(&self, kit: &mut Kit, body: &str, many: usize) -> Vec<Outcome> {
        match kit.http.post("/api/v1/push", body).await {
            Response::NotSent => vec![Outcome::Refused; many],
            Response::Answered(reply) if reply.status == 201 => {
                let answers: Vec<PushAnswer> = serde_json::from_slice(&reply.body).unwrap_or_default();
                let read = |answer: &PushAnswer| match answer.status.as_str() {
                    "queued" | "duplicate" | "buffered" => Outcome::Ok,
                    // An item that failed comes with a reason, which does not prove that the item
                    // was not stored.
                    _ => Outcome::Unknown,
                };
                let mut outcomes: Vec<Outcome> = answers.iter().map(read).collect();
                outcomes.resize(many, Outcome::Unknown);
                outcomes
            }
            Response::Answered(reply) if (400..500).contains(&reply.status) => vec![Outcome::Refused; many],
            Response::NoAnswer | Response::Answered(_) => vec![Outcome::Unknown; many],
        }
    }
}

fn unknown(outcomes: &[Outcome]) -> bool {
    // A push that reached no server is tried again, too.
    outcomes.iter().any(|outcome| matches!(outcome, Outcome::Unknown | Outcome::Refused))
}

fn body(place: &Place, keys: &Keys, manner: PushManner) -> String {
    let mut body = String::from(r#"{"items":["#);
    for (n, key) in keys.iter().enumerate() {
        let comma = if n == 0 { "" } else { "," };
        let _ = write!(body, "{comma}{}", item(place, key, manner == PushManner::Repeat));
    }
    body.push_str("]}");
    body
}

/// One message of a push, with a transaction id of its own or without.
pub(super) fn item(place: &Place, key: Key, named: bool) -> String {
    let Place { queue, partition } = place;
    let id = if named { format!(r#","transactionId":"k{key}""#) } else { String::new() };
    format!(r#"{{"queue":"{queue}","partition":"{partition}","payload":{}{id}}}"#, payload(key))
}

/// What a message carries: its key, and some bytes.
pub(super) fn payload(key: Key) -> String {
    format!(r#"{{"k":{key},"text":"nothing is lost, nothing is done twice, nobody waits for nothing"}}"#)
}
