//! Reads commands and answers them, one at a time.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use duroxide::OrchestrationRegistry;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::runtime::{Runtime, RuntimeOptions};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use crate::bed::{Bed, statements};
use crate::{Peer, gaps, latency, round_trips, stress, validation};

/// Dispatchers of each kind, wherever the number is not what is measured.
pub(crate) const SLOTS: usize = 4;

/// Carries out the commands on standard input on a peer in the database at `url`, until there are
/// no more.
pub async fn serve(peer: impl Peer, url: String) -> anyhow::Result<()> {
    let bed = Bed::new(Arc::new(peer), url);
    let mut idle = None;
    let mut commands = BufReader::new(tokio::io::stdin()).lines();
    let mut out = tokio::io::stdout();
    while let Some(line) = commands.next_line().await? {
        let command: Value = serde_json::from_str(&line)?;
        let answer = match obey(&bed, &mut idle, &command).await {
            Ok(answer) => json!({ "ok": answer }),
            Err(error) => json!({ "error": format!("{error:#}") }),
        };
        out.write_all(format!("{answer}\n").as_bytes()).await?;
        out.flush().await?;
    }
    Ok(())
}

async fn obey(bed: &Bed, idle: &mut Option<Arc<Runtime>>, command: &Value) -> anyhow::Result<Value> {
    let number = |name: &str| command[name].as_u64().with_context(|| format!("{name} is missing in {command}"));
    let count = |name: &str| number(name).map(|it| usize::try_from(it).unwrap_or(usize::MAX));
    match command["do"].as_str() {
        Some("latency") => latency::run(bed, count("count")?).await,
        Some("round_trips") => round_trips::run(bed, count("count")?, count("timers")?).await,
        Some("gaps") => gaps::run(bed, Duration::from_millis(number("patience_ms")?)).await,
        Some("stress") => stress::run(bed, &stress::Load::of(command)?).await,
        Some("ceiling") => stress::ceiling(count("slots")?, number("delay_ms")?).await,
        Some("large") => stress::large(bed, number("seconds")?).await,
        Some("validate") => validation::run(bed, count("at_once")?).await,
        Some("start_idle") => {
            *idle = Some(runtime(bed).await?);
            Ok(Value::Null)
        }
        Some("stop_idle") => {
            if let Some(runtime) = idle.take() {
                runtime.shutdown(Some(100)).await;
            }
            Ok(Value::Null)
        }
        Some("count") => Ok(json!({ "statements": statements(&bed.plain().await?.client).await? })),
        other => anyhow::bail!("there is no command {other:?}"),
    }
}

/// A runtime with nothing to do.
async fn runtime(bed: &Bed) -> anyhow::Result<Arc<Runtime>> {
    let (activities, orchestrations) = (ActivityRegistry::builder().build(), OrchestrationRegistry::builder().build());
    Ok(Runtime::start_with_options(bed.open().await?, activities, orchestrations, options()).await)
}

/// As duroxide has them, but for the number of slots.
pub(crate) fn options() -> RuntimeOptions {
    RuntimeOptions { orchestration_concurrency: SLOTS, worker_concurrency: SLOTS, ..RuntimeOptions::default() }
}
