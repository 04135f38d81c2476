//! `reveille serve`, as users run it, behind a proxy that fails on demand.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use reveille_testkit::{FaultProxy, Upstream};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, timeout};

/// A start waits for PostgreSQL to recover.
const STARTING: Duration = Duration::from_secs(120);
/// Where Debian puts the library that shifts a process's clock.
const FAKETIME: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1";

/// One node: always the same address, one server process after another.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) address: SocketAddr,
    pub(crate) proxy: FaultProxy,
    program: PathBuf,
    log: PathBuf,
    /// Locked while a fault hurts the server, so that two faults do not hit it at once.
    pub(crate) life: Mutex<Option<Child>>,
}

impl Node {
    pub(crate) async fn start(program: &Path, socket: PathBuf, log: PathBuf) -> anyhow::Result<Self> {
        let proxy = FaultProxy::start(Upstream::Unix(socket)).await;
        let address = free_address()?;
        let node = Self { address, proxy, program: program.to_owned(), log, life: Mutex::new(None) };
        let child = node.spawn(None).await?;
        *node.life.lock().await = Some(child);
        Ok(node)
    }

    /// Leads to PostgreSQL through this node's proxy.
    pub(crate) fn database_url(&self) -> String {
        format!("host=127.0.0.1 port={} user=postgres dbname=postgres", self.proxy.port())
    }

    /// Starts a server process, perhaps with a clock that is wrong by so many seconds. Tries until
    /// PostgreSQL is there.
    pub(crate) async fn spawn(&self, clock_offset_s: Option<i64>) -> anyhow::Result<Child> {
        let end = Instant::now() + STARTING;
        loop {
            match self.try_spawn(clock_offset_s).await {
                Ok(child) => return Ok(child),
                Err(error) if Instant::now() > end => return Err(error),
                Err(_) => sleep(Duration::from_millis(100)).await,
            }
        }
    }

    async fn try_spawn(&self, clock_offset_s: Option<i64>) -> anyhow::Result<Child> {
        let log = File::options().create(true).append(true).open(&self.log)?;
        let mut command = Command::new(&self.program);
        command.args([
            "serve",
            "--listen",
            &self.address.to_string(),
            "--log-level",
            "warn",
            "--database-url",
            &self.database_url(),
        ]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).kill_on_drop(true);
        if let Some(offset) = clock_offset_s {
            command.env("LD_PRELOAD", FAKETIME).env("FAKETIME", format!("{offset:+}"));
            command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        }
        let mut child = command.spawn().context("cannot start a server")?;
        let mut lines = BufReader::new(child.stdout.take().context("no standard output")?).lines();
        let line = timeout(Duration::from_secs(30), lines.next_line()).await.context("a server does not start")??;
        let line = line.context("a server ended before it listened")?;
        anyhow::ensure!(line.starts_with("listening on http://"), "a server printed {line:?}");
        Ok(child)
    }
}

/// Whether a node's clock can be shifted here.
pub(crate) fn clocks_can_shift() -> bool {
    Path::new(FAKETIME).exists()
}

/// Sends a signal to a process that this program started and has not yet waited for.
pub(crate) fn signal(child: &Child, signal: Signal) -> anyhow::Result<()> {
    let pid = child.id().and_then(|pid| i32::try_from(pid).ok()).context("the process has ended")?;
    Ok(kill(Pid::from_raw(pid), signal)?)
}

/// Below the range from which the kernel takes ports for others.
fn free_address() -> anyhow::Result<SocketAddr> {
    let tried = std::iter::repeat_with(|| SocketAddr::from((Ipv4Addr::LOCALHOST, fastrand::u16(10_000..30_000))));
    tried.take(200).find(|address| TcpListener::bind(address).is_ok()).context("no port is free")
}
