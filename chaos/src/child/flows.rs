//! Starts and runs orchestrations: two activities with a timer between them.

use std::sync::Arc;
use std::time::Duration;

use duroxide::runtime::registry::ActivityRegistry;
use duroxide::runtime::{Runtime, RuntimeOptions};
use duroxide::{ActivityContext, Client, OrchestrationContext, OrchestrationRegistry};
use reveille_duroxide::PostgresProvider;
use tokio::time::{sleep, timeout};

use super::Kit;
use crate::history::{Keys, Outcome, Place};
use crate::layout::{FLOWS, LEASE_S};

pub(super) async fn run(kit: &mut Kit, rate: u32) -> anyhow::Result<()> {
    while !kit.control.is_leaving() {
        // PostgreSQL may be away just now.
        if work(kit, rate).await.is_err() {
            sleep(Duration::from_millis(kit.random.u64(50..300))).await;
        }
    }
    Ok(())
}

async fn work(kit: &mut Kit, rate: u32) -> anyhow::Result<()> {
    let provider = PostgresProvider::options().url(kit.assignment.database_url.clone()).open().await?;
    let store = Arc::new(provider.clone());
    let lock = Duration::from_secs(LEASE_S);
    let options = RuntimeOptions { orchestrator_lock_timeout: lock, worker_lock_timeout: lock, ..Default::default() };
    let runtime = Runtime::start_with_options(store.clone(), activities(), orchestrations(), options).await;
    let client = Client::new(store);
    let place = Place::new(FLOWS.name, "p0");
    while !kit.control.is_leaving() {
        kit.control.while_held().await;
        if kit.control.is_leaving() {
            break;
        }
        let keys = kit.recorder.new_keys(1);
        let op = kit.recorder.push(&place, &keys);
        let outcome = start(&client, &keys).await;
        kit.recorder.pushed(op, keys, outcome);
        sleep(Duration::from_millis(1000 / u64::from(rate.max(1)))).await;
    }
    runtime.shutdown(None).await;
    provider.close().await;
    Ok(())
}

/// An error may hide a success.
async fn start(client: &Client, keys: &Keys) -> Outcome {
    let Some(key) = keys.iter().next() else { return Outcome::Refused };
    let started = client.start_orchestration(format!("flow-{key}"), "Flow", key.to_string());
    match timeout(Duration::from_secs(20), started).await {
        Ok(Ok(())) => Outcome::Ok,
        _ => Outcome::Unknown,
    }
}

fn orchestrations() -> OrchestrationRegistry {
    let flow = |ctx: OrchestrationContext, key: String| async move {
        let first = ctx.schedule_activity("Step", key.clone()).await?;
        ctx.schedule_timer(Duration::from_millis(50)).await;
        let second = ctx.schedule_activity("Step", first).await?;
        Ok(format!("{key}: {second}"))
    };
    OrchestrationRegistry::builder().register("Flow", flow).build()
}

fn activities() -> ActivityRegistry {
    let step = |_: ActivityContext, key: String| async move { Ok(format!("step {key}")) };
    ActivityRegistry::builder().register("Step", step).build()
}
