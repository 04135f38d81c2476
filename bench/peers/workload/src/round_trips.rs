//! One orchestration at a time through the real runtime: from the call that starts it to its end,
//! and how late timers are.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use duroxide::providers::Provider;
use duroxide::runtime::Runtime;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{ActivityContext, Client, EventKind, OrchestrationContext, OrchestrationRegistry};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::bed::Bed;
use crate::command::options;

const TIMER: Duration = Duration::from_millis(150);
/// Timers wait together; one turn after the other would take minutes.
const TIMERS_AT_ONCE: usize = 4;
const PATIENCE: Duration = Duration::from_mins(1);

/// When an orchestration came to its end: by the monotonic clock, and in milliseconds since 1970.
#[derive(Debug, Clone, Copy)]
struct End(Instant, f64);

/// Sends the first end of each instance: a replay comes to it again.
#[derive(Clone)]
struct Ends {
    seen: Arc<Mutex<HashMap<String, End>>>,
    sender: mpsc::Sender<String>,
}

impl Ends {
    fn note(&self, instance: &str) {
        #[expect(clippy::disallowed_methods, reason = "the runtime writes the time of a timer by this clock")]
        let wall = SystemTime::now();
        let wall = wall.duration_since(UNIX_EPOCH).unwrap_or_default();
        let end = End(Instant::now(), wall.as_secs_f64() * 1000.0);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.insert(instance.to_owned(), end).is_none() {
            let _ = self.sender.try_send(instance.to_owned());
        }
    }

    fn of(&self, instance: &str) -> Option<End> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).get(instance).copied()
    }
}

/// `count` orchestrations with an activity each, then `timers` with a timer each.
pub(crate) async fn run(bed: &Bed, count: usize, timers: usize) -> anyhow::Result<Value> {
    let provider = bed.open().await?;
    let (sender, mut ended) = mpsc::channel(1024);
    let ends = Ends { seen: Arc::default(), sender };
    let runtime =
        Runtime::start_with_options(Arc::clone(&provider), activities(), orchestrations(&ends), options()).await;
    let client = Client::new(Arc::clone(&provider));
    tokio::time::sleep(Duration::from_millis(300)).await;

    let mut whole = Vec::with_capacity(count);
    for number in 0..count {
        let instance = format!("trip-{number}");
        let began = Instant::now();
        client.start_orchestration(&instance, "Trip", "{}").await?;
        until_ended(&mut ended).await?;
        let End(at, _) = ends.of(&instance).context("an instance ended unseen")?;
        whole.push(at.saturating_duration_since(began).as_secs_f64() * 1000.0);
        tokio::time::sleep(Duration::from_millis(10 + (number as u64 * 29) % 41)).await;
    }
    let late = timer_lateness(&client, &provider, &ends, &mut ended, timers).await?;
    runtime.shutdown(Some(500)).await;
    Ok(json!({ "whole_ms": whole, "timer_late_ms": late }))
}

async fn timer_lateness(
    client: &Client,
    provider: &Arc<dyn Provider>,
    ends: &Ends,
    ended: &mut mpsc::Receiver<String>,
    count: usize,
) -> anyhow::Result<Vec<f64>> {
    let mut late = Vec::with_capacity(count);
    for group in 0..count.div_ceil(TIMERS_AT_ONCE) {
        let instances: Vec<String> = (0..TIMERS_AT_ONCE).map(|number| format!("timer-{group}-{number}")).collect();
        for instance in &instances {
            client.start_orchestration(instance, "Timer", "{}").await?;
            tokio::time::sleep(Duration::from_millis(7)).await;
        }
        for _ in &instances {
            until_ended(ended).await?;
        }
        for instance in &instances {
            let history = provider.read(instance).await?;
            let due = history.iter().find_map(|event| match event.kind {
                EventKind::TimerCreated { fire_at_ms } => Some(fire_at_ms),
                _ => None,
            });
            let End(_, wall) = ends.of(instance).context("an instance ended unseen")?;
            #[expect(clippy::cast_precision_loss, reason = "milliseconds since 1970 fit 53 bits")]
            late.push(wall - due.context("a timer left no trace")? as f64);
        }
    }
    Ok(late)
}

async fn until_ended(ended: &mut mpsc::Receiver<String>) -> anyhow::Result<String> {
    let instance = tokio::time::timeout(PATIENCE, ended.recv()).await.context("an orchestration did not end")?;
    instance.context("the orchestrations are gone")
}

fn activities() -> ActivityRegistry {
    let echo = |_: ActivityContext, input: String| async move { Ok(input) };
    ActivityRegistry::builder().register("Echo", echo).build()
}

fn orchestrations(ends: &Ends) -> OrchestrationRegistry {
    let (trip, timer) = (ends.clone(), ends.clone());
    OrchestrationRegistry::builder()
        .register("Trip", move |context: OrchestrationContext, input: String| {
            let ends = trip.clone();
            async move {
                let output = context.schedule_activity("Echo", input).await?;
                ends.note(&context.instance_id());
                Ok(output)
            }
        })
        .register("Timer", move |context: OrchestrationContext, input: String| {
            let ends = timer.clone();
            async move {
                context.schedule_timer(TIMER).await;
                ends.note(&context.instance_id());
                Ok(input)
            }
        })
        .build()
}
