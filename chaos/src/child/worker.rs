//! Runs jobs. Each job writes a row in the transaction that completes it, so the row is there once
//! or not at all.

use std::sync::Arc;
use std::time::Duration;

use reveille::database::{Database, DatabaseOptions};
use reveille::jobs::{Job, Jobs, JobsOptions, Outcome, Settled, Worker};
use reveille_testkit::scenario::Plain;
use tokio::sync::Mutex;
use tokio::time::sleep;

use super::Kit;
use super::consumer::Payload;
use crate::layout::{JOBS, LEASE_S};

const SLOTS: usize = 4;

pub(super) async fn run(kit: &mut Kit) -> anyhow::Result<()> {
    while !kit.control.is_leaving() {
        // PostgreSQL may be away just now.
        if work(kit).await.is_err() {
            sleep(Duration::from_millis(kit.random.u64(50..300))).await;
        }
    }
    Ok(())
}

async fn work(kit: &mut Kit) -> anyhow::Result<()> {
    let url = kit.assignment.database_url.clone();
    let database = Database::connect(DatabaseOptions::new(&url)).await?;
    let jobs = Jobs::open(&database, JobsOptions::default());
    let effects = Arc::new(Effects { url, connection: Mutex::new(None) });
    let worker = Worker::builder(&jobs).queue("chaos", 1).slots(SLOTS).lease(Duration::from_secs(LEASE_S));
    let worker = worker.handler::<Payload, _>("effect", move |payload: Payload, job: Job| {
        let effects = Arc::clone(&effects);
        async move { effects.complete(payload.k, &job).await.map_err(|error| error.to_string()) }
    });
    let running = worker.start().await?;
    while !kit.control.is_leaving() {
        sleep(Duration::from_millis(50)).await;
    }
    running.drain(Duration::from_secs(5)).await;
    database.close().await;
    Ok(())
}

struct Effects {
    url: String,
    connection: Mutex<Option<Plain>>,
}

impl Effects {
    async fn complete(&self, key: u64, job: &Job) -> anyhow::Result<()> {
        // Some jobs fail without any fault.
        anyhow::ensure!(fastrand::u32(0..20) > 0, "not this time");
        let mut connection = self.connection.lock().await;
        if connection.as_ref().is_none_or(|plain| plain.client.is_closed()) {
            *connection = Some(Plain::connect(&self.url).await?);
        }
        let Some(plain) = connection.as_mut() else { anyhow::bail!("no connection") };
        let transaction = plain.client.transaction().await?;
        let insert = "insert into chaos_effect (queue, key) values ($1, $2)";
        transaction.execute(insert, &[&JOBS.name, &i64::try_from(key)?]).await?;
        match job.settle_in(&transaction, Outcome::Done).await? {
            Settled::Recorded => Ok(transaction.commit().await?),
            Settled::LeaseLost => anyhow::bail!("another worker has it"),
        }
    }
}
