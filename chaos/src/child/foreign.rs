//! Pushes and enqueues in SQL, in transactions that stay open for a while and sometimes roll back.

use std::time::Duration;

use reveille_testkit::scenario::Plain;
use tokio::time::sleep;
use tokio_postgres::Client;

use super::Kit;
use super::producer::payload;
use crate::history::{Key, Keys, Outcome, Place};
use crate::layout::JOBS;

/// What is done in the transactions.
#[derive(Debug)]
pub(super) enum Purpose {
    Messages { queue: String, partitions: u32 },
    Jobs,
}

pub(super) async fn run(kit: &mut Kit, purpose: &Purpose, rate: u32) -> anyhow::Result<()> {
    while !kit.control.is_leaving() {
        let Ok(connected) = Plain::connect(&kit.assignment.database_url).await else {
            sleep(Duration::from_millis(kit.random.u64(50..300))).await;
            continue;
        };
        while !kit.control.is_leaving() && !connected.client.is_closed() {
            kit.control.while_held().await;
            let many = kit.random.u32(1..20);
            let place = match purpose {
                Purpose::Messages { queue, partitions } => {
                    Place::new(queue, format!("p{}", kit.random.u32(0..*partitions)))
                }
                Purpose::Jobs => Place::new(JOBS.name, "p0"),
            };
            let keys = kit.recorder.new_keys(many);
            let op = kit.recorder.push(&place, &keys);
            let outcome = transaction(kit, &connected.client, &place, &keys).await;
            kit.recorder.pushed(op, keys, outcome);
            sleep(Duration::from_secs_f64(f64::from(many) / f64::from(rate.max(1)))).await;
        }
    }
    Ok(())
}

async fn transaction(kit: &mut Kit, client: &Client, place: &Place, keys: &Keys) -> Outcome {
    let (pause_ms, rolls_back) = (kit.random.u64(0..800), kit.random.u32(0..100) < 15);
    let body = async {
        client.batch_execute("BEGIN").await?;
        for key in keys.iter() {
            put(client, place, key).await?;
        }
        sleep(Duration::from_millis(pause_ms)).await;
        if rolls_back { client.batch_execute("ROLLBACK").await } else { Ok(()) }
    };
    // Until COMMIT is sent nothing can have happened.
    if body.await.is_err() || rolls_back {
        return Outcome::Refused;
    }
    match client.batch_execute("COMMIT").await {
        Ok(()) => Outcome::Ok,
        Err(_) => Outcome::Unknown,
    }
}

async fn put(client: &Client, place: &Place, key: Key) -> Result<(), tokio_postgres::Error> {
    if place.queue == JOBS.name {
        let enqueue = "select reveille.enqueue('effect', $1::text, queue => 'chaos', max_attempts => 1000, \
                       backoff => 'list:0')";
        client.query(enqueue, &[&payload(key)]).await?;
    } else {
        let push = "select reveille.push($1, $2::text, partition => $3, transaction_id => $4)";
        client.query(push, &[&place.queue, &payload(key), &place.partition, &format!("k{key}")]).await?;
    }
    Ok(())
}
