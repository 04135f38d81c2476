//! From NOTIFY on one connection to its arrival on another.

use std::time::{Duration, Instant};

use anyhow::Context;
use futures_util::{StreamExt, stream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_postgres::{AsyncMessage, Client, NoTls};

use crate::measure::quantile;

/// A plain connection whose notifications can be read.
#[derive(Debug)]
pub(crate) struct Plain {
    pub(crate) client: Client,
    heard: mpsc::Receiver<Instant>,
    _driver: JoinSet<()>,
}

#[derive(Debug)]
pub(crate) struct RoundTrips {
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
}

pub(crate) async fn connect(url: &str) -> anyhow::Result<Plain> {
    let (client, mut connection) = tokio_postgres::connect(url, NoTls).await?;
    let (tell, heard) = mpsc::channel(16);
    let mut driver = JoinSet::new();
    driver.spawn(async move {
        let mut messages = stream::poll_fn(move |context| connection.poll_message(context));
        while let Some(Ok(message)) = messages.next().await {
            if let AsyncMessage::Notification(_) = message {
                let _ = tell.try_send(Instant::now());
            }
        }
    });
    Ok(Plain { client, heard, _driver: driver })
}

/// One at a time, each committed before the next: what an otherwise idle system sees.
pub(crate) async fn round_trips(url: &str, span: Duration) -> anyhow::Result<RoundTrips> {
    let (speaker, mut listener) = (connect(url).await?, connect(url).await?);
    listener.client.batch_execute("listen bench_ground").await?;
    let notify = speaker.client.prepare("select pg_notify('bench_ground', '')").await?;
    let mut took = Vec::new();
    let began = Instant::now();
    while began.elapsed() < span {
        let said = Instant::now();
        speaker.client.execute(&notify, &[]).await?;
        let heard = tokio::time::timeout(Duration::from_secs(5), listener.heard.recv()).await;
        let heard = heard.context("a notification did not arrive within 5 s")?.context("the listener is gone")?;
        took.push(heard.saturating_duration_since(said).as_secs_f64() * 1000.0);
    }
    Ok(RoundTrips { p50_ms: quantile(&took, 0.5), p99_ms: quantile(&took, 0.99) })
}
