//! duroxide's own stress test: orchestrations that fan out to activities, as many at once as
//! allowed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use async_trait::async_trait;
use duroxide::provider_stress_tests::large_payload::{LargePayloadConfig, run_large_payload_test_with_config};
use duroxide::provider_stress_tests::parallel_orchestrations::{
    ProviderStressFactory, run_parallel_orchestrations_test_with_config,
};
use duroxide::provider_stress_tests::{StressTestConfig, StressTestResult};
use duroxide::providers::Provider;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::bed::{Bed, statements};

/// Activities of each orchestration.
const TASKS: u32 = 5;

/// How much the provider has to do.
pub(crate) struct Load {
    slots: usize,
    at_once: usize,
    seconds: u64,
    delay_ms: u64,
}

impl Load {
    pub(crate) fn of(command: &Value) -> anyhow::Result<Self> {
        let number = |name: &str| command[name].as_u64().with_context(|| format!("{name} is missing in {command}"));
        let count = |name: &str| number(name).map(|it| usize::try_from(it).unwrap_or(usize::MAX));
        Ok(Self {
            slots: count("slots")?,
            at_once: count("at_once")?,
            seconds: number("seconds")?,
            delay_ms: number("delay_ms")?,
        })
    }
}

struct Ready(Arc<dyn Provider>);

#[async_trait]
impl ProviderStressFactory for Ready {
    async fn create_provider(&self) -> Arc<dyn Provider> {
        Arc::clone(&self.0)
    }
}

/// Orchestrations per second, and statements for each.
pub(crate) async fn run(bed: &Bed, load: &Load) -> anyhow::Result<Value> {
    let config = StressTestConfig {
        max_concurrent: load.at_once,
        duration_secs: load.seconds,
        tasks_per_instance: TASKS as usize,
        activity_delay_ms: load.delay_ms,
        orch_concurrency: load.slots,
        worker_concurrency: load.slots,
        wait_timeout_secs: 60,
    };
    let ready = Ready(bed.open().await?);
    let plain = bed.plain().await?;
    let before = statements(&plain.client).await?;
    let result = run_parallel_orchestrations_test_with_config(&ready, config).await;
    let result = result.map_err(|error| anyhow::anyhow!("{error}"))?;
    let sent = statements(&plain.client).await? - before;
    Ok(answer(&result, sent))
}

/// Orchestrations per second if a provider took no time at all: the slots do nothing but their
/// activities.
pub(crate) async fn ceiling(slots: usize, delay_ms: u64) -> anyhow::Result<Value> {
    const SPAN: Duration = Duration::from_secs(1);
    let began = Instant::now();
    let mut running = JoinSet::new();
    for _ in 0..slots {
        running.spawn(async move {
            let mut done = 0_u32;
            while began.elapsed() < SPAN {
                tokio::time::sleep(Duration::from_millis(delay_ms)).await;
                done += 1;
            }
            done
        });
    }
    let done: u32 = running.join_all().await.iter().sum();
    Ok(json!({ "per_s": f64::from(done) / f64::from(TASKS) / began.elapsed().as_secs_f64() }))
}

/// The variant with payloads of 10 to 100 kB.
pub(crate) async fn large(bed: &Bed, seconds: u64) -> anyhow::Result<Value> {
    let mut config = LargePayloadConfig::default();
    config.base.duration_secs = seconds;
    let ready = Ready(bed.open().await?);
    let result = run_large_payload_test_with_config(&ready, config).await;
    Ok(answer(&result.map_err(|error| anyhow::anyhow!("{error}"))?, 0.0))
}

fn answer(result: &StressTestResult, statements: f64) -> Value {
    #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
    let completed = result.completed as f64;
    json!({
        "per_s": result.orch_throughput,
        "completed": completed,
        "failed": result.launched.saturating_sub(result.completed),
        "statements_each": statements / completed.max(1.0),
    })
}
