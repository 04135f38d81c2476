//! From the return of an enqueue to a fetch that has it, while nothing else happens.

use std::sync::Arc;
use std::time::{Duration, Instant};

use duroxide::providers::{Provider, TagFilter};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::bed::{Bed, activity, metadata, start};
use crate::command::SLOTS;

const LOCK: Duration = Duration::from_secs(30);
const WAIT: Duration = Duration::from_secs(30);
/// How long the runtime sleeps after an empty fetch that did not wait.
const MIN_POLL: Duration = Duration::from_millis(100);
/// An item that no slot fetches within this time is an error, not a latency.
const PATIENCE: Duration = Duration::from_mins(1);

/// `count` messages and as many activities, one after the other.
pub(crate) async fn run(bed: &Bed, count: usize) -> anyhow::Result<Value> {
    let provider = bed.open().await?;
    let (sender, mut fetched) = mpsc::channel(1);
    let mut slots = JoinSet::new();
    for _ in 0..SLOTS {
        slots.spawn(take_turns(Arc::clone(&provider), sender.clone()));
        slots.spawn(take_activities(Arc::clone(&provider), sender.clone()));
    }
    let (mut turns, mut activities) = (Vec::new(), Vec::new());
    // Slots are asleep when it begins.
    tokio::time::sleep(Duration::from_millis(300)).await;
    for number in 0..count {
        provider.enqueue_for_orchestrator(start(&format!("latency-{number}")), None).await?;
        turns.push(arrival(&mut fetched).await?);
        pause(number).await;
        provider.enqueue_for_worker(activity(&format!("latency-{number}"))).await?;
        activities.push(arrival(&mut fetched).await?);
        pause(number + count).await;
    }
    Ok(json!({ "turns_ms": turns, "activities_ms": activities }))
}

async fn arrival(fetched: &mut mpsc::Receiver<Instant>) -> anyhow::Result<f64> {
    let returned = Instant::now();
    let at = tokio::time::timeout(PATIENCE, fetched.recv()).await?;
    let at = at.ok_or_else(|| anyhow::anyhow!("the slots are gone"))?;
    Ok(at.saturating_duration_since(returned).as_secs_f64() * 1000.0)
}

/// Uneven, so that no provider's poll interval falls in step with it.
async fn pause(number: usize) {
    tokio::time::sleep(Duration::from_millis(20 + (number as u64 * 37) % 61)).await;
}

async fn take_turns(provider: Arc<dyn Provider>, sender: mpsc::Sender<Instant>) {
    loop {
        let began = Instant::now();
        match provider.fetch_orchestration_item(LOCK, WAIT, None).await {
            Ok(Some((item, token, _))) => {
                let _ = sender.send(Instant::now()).await;
                let execution = item.execution_id;
                let committed = provider
                    .ack_orchestration_item(&token, execution, vec![], vec![], vec![], metadata(), vec![])
                    .await;
                if let Err(error) = committed {
                    eprintln!("a turn could not be committed: {error}");
                }
            }
            _ => rest(began).await,
        }
    }
}

async fn take_activities(provider: Arc<dyn Provider>, sender: mpsc::Sender<Instant>) {
    loop {
        let began = Instant::now();
        match provider.fetch_work_item(LOCK, WAIT, None, &TagFilter::default()).await {
            Ok(Some((_, token, _))) => {
                let _ = sender.send(Instant::now()).await;
                if let Err(error) = provider.ack_work_item(&token, None).await {
                    eprintln!("an activity could not be settled: {error}");
                }
            }
            _ => rest(began).await,
        }
    }
}

/// As the runtime does after an empty fetch.
async fn rest(began: Instant) {
    match MIN_POLL.checked_sub(began.elapsed()) {
        Some(left) => tokio::time::sleep(left).await,
        None => tokio::task::yield_now().await,
    }
}
