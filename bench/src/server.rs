//! A `reveille serve` in a process of its own, as users run it.

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context;
use reveille_testkit::scenario::wire::Wire;
use reveille_testkit::scenario::{program, progress};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// A schema is made within it.
const STARTING: Duration = Duration::from_secs(60);

/// A child that listens; it ends with this value.
#[derive(Debug)]
pub(crate) struct Serving {
    _child: Child,
    pub(crate) pid: u32,
    pub(crate) address: SocketAddr,
}

impl Serving {
    /// Builds the program, so that what is measured is what lies in the tree, and starts it on a
    /// database.
    pub(crate) async fn start(database_url: &str) -> anyhow::Result<Self> {
        let program = program::build().await?;
        progress("starting reveille serve");
        let mut command = Command::new(&program);
        command.args(["serve", "--listen", "127.0.0.1:0", "--log-level", "warn", "--database-url", database_url]);
        Self::spawn(command).await
    }

    /// Starts a child that prints where it listens.
    pub(crate) async fn spawn(mut command: Command) -> anyhow::Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().context("cannot start a server")?;
        let pid = child.id().context("the server ended at once")?;
        let mut lines = BufReader::new(child.stdout.take().context("a child without standard output")?).lines();
        let line =
            timeout(STARTING, lines.next_line()).await.context("the server does not print where it listens")??;
        let line = line.context("the server ended before it listened")?;
        let address = line.strip_prefix("listening on http://").with_context(|| format!("it printed {line:?}"))?;
        Ok(Self { _child: child, pid, address: address.parse()? })
    }

    pub(crate) async fn connect(&self) -> anyhow::Result<Wire> {
        Wire::connect(self.address).await
    }

    /// The answer of `GET /api/v1/status`.
    pub(crate) async fn status(&self) -> anyhow::Result<Value> {
        let body = self.connect().await?.get("/api/v1/status").await?.expect(200)?;
        Ok(serde_json::from_slice(&body)?)
    }

    /// Claim rounds so far, whatever they found.
    pub(crate) async fn claim_rounds(&self) -> anyhow::Result<f64> {
        let body = self.connect().await?.get("/metrics").await?.expect(200)?;
        let text = String::from_utf8(body)?;
        let rounds = text.lines().filter(|line| line.starts_with("reveille_looks_total{"));
        Ok(rounds.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum())
    }
}
