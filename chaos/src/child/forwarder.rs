//! Consumes and produces in one transaction: each message of the inbox is forwarded exactly once.

use serde::Deserialize;

use super::Kit;
use super::consumer::{Consumer, PartitionBatch, acknowledgement};
use super::http::Response;
use super::producer::item;
use crate::history::{Keys, Outcome, Place, Status};
use crate::layout::{FORWARD_MARK, FORWARDED, INBOX, Manner};

#[derive(Debug, Deserialize)]
struct TransactionAnswer {
    success: bool,
}

pub(super) async fn run(kit: &mut Kit) -> anyhow::Result<()> {
    let group = INBOX.groups[0].0;
    let consumer = Consumer {
        queue: INBOX.name.to_owned(),
        group: group.to_owned(),
        batch: 10,
        partitions: 1,
        manner: Manner::Acks,
    };
    while !kit.control.is_leaving() {
        for batch in consumer.pop(kit).await {
            forward(kit, &batch, group).await;
        }
    }
    Ok(())
}

async fn forward(kit: &mut Kit, batch: &PartitionBatch, group: &str) {
    let consumed = batch.keys();
    let produced: Keys = consumed.iter().map(|key| key + FORWARD_MARK).collect();
    let to = Place::new(FORWARDED.name, &batch.place.partition);
    // Without transaction ids: only the transaction prevents that a message is forwarded twice.
    let pushes: Vec<String> = produced.iter().map(|key| item(&to, key, false)).collect();
    let acks = batch.messages.iter().map(|message| {
        let ack = acknowledgement(message, &batch.lease, group, "completed");
        format!(r#"{{"type":"ack",{}"#, &ack[1..])
    });
    let acks: Vec<String> = acks.collect();
    let body = format!(r#"{{"operations":[{{"type":"push","items":[{}]}},{}]}}"#, pushes.join(","), acks.join(","));
    let push = kit.recorder.push(&to, &produced);
    let settle = kit.recorder.settle(&batch.place, group, &batch.lease, (&consumed, Status::Completed));
    let outcome = match kit.http.post("/api/v1/transaction", &body).await {
        Response::NotSent => Outcome::Refused,
        Response::Answered(reply) if reply.status == 200 => {
            match serde_json::from_slice::<TransactionAnswer>(&reply.body) {
                Ok(TransactionAnswer { success: true }) => Outcome::Ok,
                Ok(TransactionAnswer { success: false }) => Outcome::Refused,
                Err(_) => Outcome::Unknown,
            }
        }
        Response::Answered(reply) if (400..500).contains(&reply.status) => Outcome::Refused,
        Response::NoAnswer | Response::Answered(_) => Outcome::Unknown,
    };
    kit.recorder.pushed(push, produced, outcome);
    kit.recorder.settled(settle, consumed, outcome);
}
