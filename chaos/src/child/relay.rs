//! Consumes and produces in one transaction: each message of the inbox is relayed exactly once.

use serde::Deserialize;

use super::Kit;
use super::consumer::{Consumer, Handful, acknowledgement};
use super::door::Asked;
use super::producer::item;
use crate::history::{Keys, Outcome, Place, Word};
use crate::layout::{INBOX, Manner, RELAY_MARK, RELAYED};

#[derive(Debug, Deserialize)]
struct Told {
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
    while !kit.mood.is_leaving() {
        for handful in consumer.pop(kit).await {
            relay(kit, &handful, group).await;
        }
    }
    Ok(())
}

async fn relay(kit: &mut Kit, handful: &Handful, group: &str) {
    let consumed = handful.keys();
    let produced: Keys = consumed.iter().map(|key| key + RELAY_MARK).collect();
    let to = Place::new(RELAYED.name, &handful.place.partition);
    // Without transaction ids: that nothing is relayed twice rests on the transaction alone.
    let pushes: Vec<String> = produced.iter().map(|key| item(&to, key, false)).collect();
    let acks = handful.messages.iter().map(|message| {
        let said = acknowledgement(message, &handful.lease, group, "completed");
        format!(r#"{{"type":"ack",{}"#, &said[1..])
    });
    let acks: Vec<String> = acks.collect();
    let body = format!(r#"{{"operations":[{{"type":"push","items":[{}]}},{}]}}"#, pushes.join(","), acks.join(","));
    let push = kit.pen.push(&to, &produced);
    let settle = kit.pen.settle(&handful.place, group, &handful.lease, (&consumed, Word::Completed));
    let outcome = match kit.door.post("/api/v1/transaction", &body).await {
        Asked::NotSent => Outcome::Refused,
        Asked::Answered(reply) if reply.status == 200 => match serde_json::from_slice::<Told>(&reply.body) {
            Ok(Told { success: true }) => Outcome::Ok,
            Ok(Told { success: false }) => Outcome::Refused,
            Err(_) => Outcome::Unknown,
        },
        Asked::Answered(reply) if (400..500).contains(&reply.status) => Outcome::Refused,
        Asked::NoAnswer | Asked::Answered(_) => Outcome::Unknown,
    };
    kit.pen.pushed(push, produced, outcome);
    kit.pen.settled(settle, consumed, outcome);
}
