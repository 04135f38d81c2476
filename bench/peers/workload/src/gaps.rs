//! How late a waiting fetch learns of work that no insert announces, or whose announcement was
//! lost.
//!
//! Every situation has a provider and a schema of its own, so they run side by side.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use duroxide::providers::Provider;
use futures_util::future::try_join;
use serde_json::{Value, json};

use crate::bed::{Bed, start};

const LOCK: Duration = Duration::from_mins(1);
const SHORT_LOCK: Duration = Duration::from_secs(2);
const DELAY: Duration = Duration::from_secs(1);
const WAIT: Duration = Duration::from_secs(30);
/// How long the fetch has been asleep before something happens.
const ASLEEP: Duration = Duration::from_millis(500);
const MIN_POLL: Duration = Duration::from_millis(100);

/// What happens while the fetch sleeps.
#[derive(Clone, Copy)]
enum Situation {
    AbandonWithDelay,
    Abandon,
    LockExpires,
    ListenerTerminated,
    DelayedEnqueue,
}

const ALL: [(Situation, &str); 5] = [
    (Situation::AbandonWithDelay, "abandon_delayed"),
    (Situation::Abandon, "abandon"),
    (Situation::LockExpires, "lock_expiry"),
    (Situation::ListenerTerminated, "listener_terminated"),
    (Situation::DelayedEnqueue, "delayed_enqueue"),
];

/// Milliseconds after the moment at which the work could have been taken; `patience` if it was not
/// taken by then.
pub(crate) async fn run(bed: &Bed, patience: Duration) -> anyhow::Result<Value> {
    let mut running = tokio::task::JoinSet::new();
    for (situation, name) in ALL {
        // The last one terminates every listener of the database: the others must be through by
        // then.
        if matches!(situation, Situation::ListenerTerminated) {
            continue;
        }
        let bed = bed.clone();
        running.spawn(async move { Ok::<_, anyhow::Error>((name, lateness(&bed, situation, patience).await?)) });
    }
    let mut late = serde_json::Map::new();
    while let Some(one) = running.join_next().await {
        let (name, lateness) = one??;
        late.insert(name.to_owned(), json!(lateness));
    }
    let terminated = lateness(bed, Situation::ListenerTerminated, patience).await?;
    late.insert("listener_terminated".to_owned(), json!(terminated));
    Ok(Value::Object(late))
}

async fn lateness(bed: &Bed, situation: Situation, patience: Duration) -> anyhow::Result<f64> {
    let provider = bed.open().await?;
    let held = match situation {
        Situation::AbandonWithDelay | Situation::Abandon => Some(take(&provider, LOCK).await?),
        Situation::LockExpires => Some(take(&provider, SHORT_LOCK).await?),
        Situation::ListenerTerminated | Situation::DelayedEnqueue => None,
    };
    let fetch = async {
        match tokio::time::timeout(patience + SHORT_LOCK + ASLEEP, fetched(&provider)).await {
            Ok(at) => Ok::<_, anyhow::Error>(Some(at?)),
            Err(_) => Ok(None),
        }
    };
    let happening = async {
        tokio::time::sleep(ASLEEP).await;
        happen(bed, &provider, situation, held.as_ref()).await
    };
    let (at, due) = try_join(fetch, happening).await?;
    let late = at.map_or(patience, |at| at.saturating_duration_since(due));
    Ok(late.as_secs_f64() * 1000.0)
}

/// Makes it happen, and returns when the work is due.
async fn happen(
    bed: &Bed,
    provider: &Arc<dyn Provider>,
    situation: Situation,
    held: Option<&(String, Instant)>,
) -> anyhow::Result<Instant> {
    let (held, locked) = held.map_or(("", Instant::now()), |(token, since)| (token.as_str(), *since));
    match situation {
        Situation::AbandonWithDelay => {
            provider.abandon_orchestration_item(held, Some(DELAY), false).await?;
            Ok(Instant::now() + DELAY)
        }
        Situation::Abandon => {
            provider.abandon_orchestration_item(held, None, false).await?;
            Ok(Instant::now())
        }
        Situation::LockExpires => Ok(locked + SHORT_LOCK),
        Situation::ListenerTerminated => {
            if let Some(condition) = bed.peer.listener() {
                let end = format!(
                    "select pg_terminate_backend(pid) from pg_stat_activity \
                     where datname = current_database() and pid <> pg_backend_pid() and {condition}"
                );
                let ended = bed.plain().await?.client.query(&end, &[]).await?;
                anyhow::ensure!(!ended.is_empty(), "no listener was found");
            }
            provider.enqueue_for_orchestrator(start("gap"), None).await?;
            Ok(Instant::now())
        }
        Situation::DelayedEnqueue => {
            provider.enqueue_for_orchestrator(start("gap"), Some(DELAY)).await?;
            Ok(Instant::now() + DELAY)
        }
    }
}

/// A turn of a new instance, held as by a slot that died; and since when, or a little earlier.
async fn take(provider: &Arc<dyn Provider>, lock: Duration) -> anyhow::Result<(String, Instant)> {
    // The first fetch opens connections; the lock's beginning is to be known to the millisecond.
    provider.fetch_orchestration_item(lock, Duration::ZERO, None).await?;
    provider.enqueue_for_orchestrator(start("gap"), None).await?;
    let before = Instant::now();
    let taken = provider.fetch_orchestration_item(lock, WAIT, None).await?;
    Ok((taken.context("a message that is there was not fetched")?.1, before))
}

/// When a fetch that is called again and again, as the runtime does, has something.
async fn fetched(provider: &Arc<dyn Provider>) -> anyhow::Result<Instant> {
    loop {
        let began = Instant::now();
        if provider.fetch_orchestration_item(LOCK, WAIT, None).await?.is_some() {
            return Ok(Instant::now());
        }
        if let Some(left) = MIN_POLL.checked_sub(began.elapsed()) {
            tokio::time::sleep(left).await;
        }
    }
}
