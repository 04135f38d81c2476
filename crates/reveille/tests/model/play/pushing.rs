//! Pushes through the library and by SQL.

use reveille::messages::{MessageId, PushItem, PushOutcome, Pushed};
use uuid::{Builder, Uuid};

use super::{Play, agree, partition_name};
use crate::model::{Check, Pushing, Sent};
use crate::story::Item;

impl Play<'_> {
    pub(super) async fn push(&mut self, node: u8, items: &[Item]) -> Check {
        let payloads: Vec<Vec<u8>> = items.iter().map(|_| self.payload()).collect();
        let pushed = items.iter().zip(&payloads).map(|(item, payload)| self.item(*item, payload)).collect();
        let answers = self.node(node).push(pushed).await;
        // Whatever was committed before a push began comes before it.
        self.model.make();
        for item in items {
            self.model.receive(item.partition, usize::MAX);
        }
        agree("how many answers", &answers.len(), &items.len())?;
        for ((item, payload), answer) in items.iter().zip(&payloads).zip(answers) {
            let answer = answer.map_err(|error| format!("a push was refused: {error:?}"))?;
            self.pushed(*item, payload, &answer)?;
        }
        Ok(())
    }

    pub(super) fn pushed(&mut self, item: Item, payload: &[u8], answer: &Pushed) -> Check {
        let name = transaction_id(item);
        let remembers = self.model.rules.remembers;
        let log = self.model.logs.entry(item.partition).or_default();
        let pushing = match answer.outcome {
            PushOutcome::Stored { seq } => Pushing::Stored(seq),
            PushOutcome::Duplicate { of } => Pushing::Duplicate(of),
            other => return Err(format!("a push was answered {other:?}")),
        };
        agree("a push", &pushing, &log.expects(name.as_deref(), remembers))?;
        match pushing {
            Pushing::Stored(_) => log.append(answer.id, name.as_deref(), payload),
            Pushing::Duplicate(of) => agree("whose duplicate", &answer.id, &of)?,
        }
        let uid = answer.partition_uid.ok_or("a push does not know its partition")?;
        agree("the partition", &uid, self.uids.entry(item.partition).or_insert(uid))
    }

    pub(super) async fn sql_push(&mut self, items: &[Item], commits: bool) -> Check {
        self.eye.run("begin").await;
        let mut sent = Vec::new();
        for item in items {
            let (payload, name) = (self.payload(), transaction_id(*item));
            let partition = format!("p{}", item.partition);
            let push = "select reveille.push($1::text, $2::bytea, $3::text, $4::text)";
            let row = self.eye.client.query_one(push, &[&self.queue.as_str(), &payload, &partition, &name]).await;
            let id: Uuid = row.map_err(|error| format!("push by SQL: {error:?}"))?.get(0);
            sent.push((item.partition, Sent { id: MessageId(id), transaction_id: name, payload }));
        }
        self.eye.run(if commits { "commit" } else { "rollback" }).await;
        if commits {
            self.model.outbox.extend(sent);
        }
        Ok(())
    }

    pub(super) fn item(&self, item: Item, payload: &[u8]) -> PushItem {
        let made = PushItem::new(self.queue.clone(), payload.to_owned()).partition(partition_name(item.partition));
        match transaction_id(item) {
            Some(name) => made.transaction_id(name),
            None => made,
        }
    }

    pub(super) fn payload(&mut self) -> Vec<u8> {
        self.payloads += 1;
        format!("payload {}", self.payloads).into_bytes()
    }
}

pub(super) fn transaction_id(item: Item) -> Option<String> {
    // Some look like ids of messages, and some of those grow: a few of them were made at about the
    // same time.
    item.name.map(|name| match name % 3 {
        0 => Uuid::from_u128(u128::from(name)).to_string(),
        1 => Builder::from_unix_timestamp_millis(u64::from(name) * 20, &[name; 10]).into_uuid().to_string(),
        _ => format!("order {name}"),
    })
}
