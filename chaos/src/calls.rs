//! Calls that the run makes itself, with their records.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context;
use reveille_testkit::scenario::wire::Wire;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::clock::now;
use super::history::{Event, History, Key, Keys, Outcome, Place, Status};
use super::layout::{LEASE_S, QUEUES};

/// So many pushes may fail before a server counts as not healed.
const REFUSED_MAX: u32 = 10;

/// A connection to a server that is expected to work.
#[derive(Debug)]
pub(crate) struct Caller<'h> {
    history: &'h History,
    wire: Wire,
}

/// One message and its lease.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) key: Key,
    pub(crate) place: Place,
    pub(crate) lease: String,
    transaction_id: String,
    partition_id: String,
}

impl<'h> Caller<'h> {
    pub(crate) async fn connect(history: &'h History, address: SocketAddr) -> anyhow::Result<Self> {
        let wire = timeout(Duration::from_secs(5), Wire::connect(address)).await.context("no connection")??;
        Ok(Self { history, wire })
    }

    /// Makes the queues of the run.
    pub(crate) async fn configure(&mut self) -> anyhow::Result<()> {
        for queue in QUEUES {
            let options = json!({ "leaseTime": LEASE_S, "retryLimit": 2, "retryDelay": 200, "maxDeliveries": 100_000 });
            let body = json!({ "queue": queue.name, "options": options }).to_string();
            self.wire.post("/api/v1/configure", &body).await?.expect(200)?;
        }
        Ok(())
    }

    /// Pushes one message with a new key.
    pub(crate) async fn push(&mut self, place: &Place) -> anyhow::Result<Key> {
        let op = self.history.number();
        let keys = Keys::one(op);
        let item = json!({ "queue": place.queue, "partition": place.partition, "payload": { "k": op } });
        self.history.note(Event::Push { op, place: place.clone(), keys: keys.clone() });
        let reply = self.wire.post("/api/v1/push", &json!({ "items": [item] }).to_string()).await?;
        let outcome = if reply.status == 201 { Outcome::Ok } else { Outcome::Unknown };
        self.history.note(Event::Pushed { op, keys, outcome });
        reply.expect(201)?;
        Ok(op)
    }

    /// Pops one message, waiting a little; `None` if there is none.
    pub(crate) async fn pop(&mut self, place: &Place, group: &str) -> anyhow::Result<Option<Taken>> {
        let Place { queue, partition } = place;
        let path =
            format!("/api/v1/pop/queue/{queue}/partition/{partition}?consumerGroup={group}&wait=true&timeout=1000");
        let began = now();
        let reply = self.wire.get(&path).await?;
        if reply.status == 204 {
            return Ok(None);
        }
        let popped: Value = serde_json::from_slice(&reply.expect(200)?)?;
        let message = &popped["messages"][0];
        let text = |name: &str| message[name].as_str().unwrap_or_default().to_owned();
        let key = message["data"]["k"].as_u64().context("a message without a key")?;
        let taken = Taken {
            key,
            place: place.clone(),
            lease: text("leaseId"),
            transaction_id: text("transactionId"),
            partition_id: text("partitionId"),
        };
        let (group, lease, keys) = (group.to_owned(), taken.lease.clone(), Keys::one(key));
        self.history.note(Event::Delivered { began, place: place.clone(), group, lease, attempt: 0, keys });
        Ok(Some(taken))
    }

    /// Acks it; returns whether that was a success.
    pub(crate) async fn ack(&mut self, taken: &Taken, group: &str) -> anyhow::Result<bool> {
        let (op, keys) = (self.history.number(), Keys::one(taken.key));
        let (place, lease) = (taken.place.clone(), taken.lease.clone());
        let status = Status::Completed;
        self.history.note(Event::Settle { op, place, group: group.to_owned(), lease, keys: keys.clone(), status });
        let body = json!({ "transactionId": taken.transaction_id, "partitionId": taken.partition_id,
            "leaseId": taken.lease, "consumerGroup": group, "status": "completed" });
        let reply = self.wire.post("/api/v1/ack", &body.to_string()).await?;
        let answer: Value = serde_json::from_slice(&reply.expect(200)?)?;
        let (success, noop) = (answer[0]["success"] == true, answer[0]["noop"] == true);
        let outcome = match (success, noop) {
            (true, false) => Outcome::Ok,
            (true, true) => Outcome::Again,
            (false, _) => Outcome::Refused,
        };
        self.history.note(Event::Settled { op, keys, outcome });
        Ok(success)
    }

    /// Moves a group back to a time.
    pub(crate) async fn seek(&mut self, queue: &str, group: &str, to: &str) -> anyhow::Result<()> {
        let began = now();
        let path = format!("/api/v1/consumer-groups/{group}/queues/{queue}/seek");
        let body = json!({ "timestamp": to }).to_string();
        let reply = timeout(Duration::from_secs(15), self.wire.post(&path, &body)).await;
        let outcome = match &reply {
            Ok(Ok(reply)) if reply.status == 200 => Outcome::Ok,
            Ok(Ok(reply)) if reply.status < 500 => Outcome::Refused,
            _ => Outcome::Unknown,
        };
        let (queue, group) = (queue.to_owned(), group.to_owned());
        self.history.note(Event::Sought { began, queue, group, outcome });
        Ok(())
    }

    /// One message after another to random places, for `span`: each finds consumers that wait.
    pub(crate) async fn trickle(&mut self, places: &[Place], span: Duration) -> anyhow::Result<()> {
        let end = tokio::time::Instant::now() + span;
        let mut refused = 0;
        while tokio::time::Instant::now() < end {
            // A batcher of this server may still have to find out that its connection is gone.
            if let Err(error) = self.push(&places[fastrand::usize(0..places.len())]).await {
                refused += 1;
                anyhow::ensure!(refused < REFUSED_MAX, "a server that was healed does not work: {error:#}");
            }
            sleep(Duration::from_millis(40)).await;
        }
        Ok(())
    }
}
