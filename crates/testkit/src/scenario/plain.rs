//! A connection to PostgreSQL with nothing of ours between.

use std::time::Instant;

use futures_util::{StreamExt, stream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_postgres::{AsyncMessage, Client, NoTls};

/// A plain connection whose notifications can be read.
#[derive(Debug)]
pub struct Plain {
    /// The connection.
    pub client: Client,
    notified: mpsc::Receiver<Instant>,
    _driver: JoinSet<()>,
}

impl Plain {
    /// Connects without TLS.
    pub async fn connect(url: &str) -> anyhow::Result<Self> {
        let (client, mut connection) = tokio_postgres::connect(url, NoTls).await?;
        let (sender, notified) = mpsc::channel(16);
        let mut driver = JoinSet::new();
        driver.spawn(async move {
            let mut messages = stream::poll_fn(move |context| connection.poll_message(context));
            while let Some(Ok(message)) = messages.next().await {
                if let AsyncMessage::Notification(_) = message {
                    let _ = sender.try_send(Instant::now());
                }
            }
        });
        Ok(Self { client, notified, _driver: driver })
    }

    /// When the next notification arrived; `None` when the connection has ended.
    pub async fn notified_at(&mut self) -> Option<Instant> {
        self.notified.recv().await
    }
}
