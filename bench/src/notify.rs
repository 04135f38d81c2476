//! From NOTIFY on one connection to its arrival on another.

use std::time::{Duration, Instant};

use anyhow::Context;
use reveille_testkit::scenario::{Plain, quantile};

#[derive(Debug)]
pub(crate) struct RoundTrips {
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
}

/// One at a time, each committed before the next: what an otherwise idle system sees.
pub(crate) async fn round_trips(url: &str, span: Duration) -> anyhow::Result<RoundTrips> {
    let (sender, mut listener) = (Plain::connect(url).await?, Plain::connect(url).await?);
    listener.client.batch_execute("listen bench_ground").await?;
    let notify = sender.client.prepare("select pg_notify('bench_ground', '')").await?;
    let mut took = Vec::new();
    let began = Instant::now();
    while began.elapsed() < span {
        let sent = Instant::now();
        sender.client.execute(&notify, &[]).await?;
        let arrived = tokio::time::timeout(Duration::from_secs(5), listener.notified_at()).await;
        let arrived = arrived.context("a notification did not arrive within 5 s")?.context("the listener is gone")?;
        took.push(arrived.saturating_duration_since(sent).as_secs_f64() * 1000.0);
    }
    Ok(RoundTrips { p50_ms: quantile(&took, 0.5), p99_ms: quantile(&took, 0.99) })
}
