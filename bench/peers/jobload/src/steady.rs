//! Enqueues jobs one by one at a steady rate, and notes when each was committed.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::books::now;
use crate::{Job, Queue, Way};

/// No more than this wait for their commit at once.
const AT_ONCE: usize = 32;

/// What to enqueue, and how fast.
#[derive(Debug, Deserialize)]
pub(crate) struct SteadyLoad {
    queue: String,
    way: Way,
    from: u64,
    count: u64,
    per_s: u32,
}

/// Microseconds of the machine's clock, for each job, when its commit returned.
pub(crate) async fn run(queue: &Arc<dyn Queue>, load: &SteadyLoad) -> anyhow::Result<Value> {
    let mut committed = vec![0; usize::try_from(load.count)?];
    let mut calls = JoinSet::new();
    let (began, step) = (Instant::now(), Duration::from_secs(1) / load.per_s);
    for place in 0..load.count {
        tokio::time::sleep_until(began + step * u32::try_from(place)? + unevenness(place, step)).await;
        while calls.len() >= AT_ONCE {
            note(&mut committed, calls.join_next().await)?;
        }
        let (queue, name, way, n) = (Arc::clone(queue), load.queue.clone(), load.way, load.from + place);
        calls.spawn(async move {
            queue.enqueue(&name, way, &[Job { n, delay: None }]).await?;
            anyhow::Ok((place, now()))
        });
    }
    while let Some(call) = calls.join_next().await {
        note(&mut committed, Some(call))?;
    }
    Ok(json!({ "committed": committed }))
}

type Call = Option<Result<anyhow::Result<(u64, u64)>, tokio::task::JoinError>>;

fn note(committed: &mut [u64], call: Call) -> anyhow::Result<()> {
    if let Some(call) = call {
        let (place, at) = call??;
        committed[usize::try_from(place)?] = at;
    }
    Ok(())
}

/// Up to half a step, so that no queue's poll interval falls in step with it.
fn unevenness(place: u64, step: Duration) -> Duration {
    step / 2 * u32::try_from(place * 37 % 61).unwrap_or(0) / 61
}
