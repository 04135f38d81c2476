//! The child processes of a run: started, recorded, hurt, started again.

use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::Context;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::child::{Assignment, CHILD};
use super::history::{History, Record};
use super::layout::Role;

/// All child processes, and what they need to start.
#[derive(Debug)]
pub(crate) struct Processes {
    pub(crate) participants: Vec<Participant>,
    history: Arc<History>,
    nodes: Vec<SocketAddr>,
    /// Connection strings for PostgreSQL; each process gets the next one.
    database_urls: Vec<String>,
    seed: u64,
    started: AtomicU32,
}

/// One role in the run, filled by one process after another.
#[derive(Debug)]
pub(crate) struct Participant {
    pub(crate) role: Role,
    /// Locked while a fault hurts the process.
    pub(crate) process: Mutex<Option<Process>>,
}

/// A process and the reader of its history.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) child: Child,
    stdin: ChildStdin,
    reader: JoinSet<()>,
}

impl Processes {
    pub(crate) fn new(
        roles: Vec<Role>,
        history: Arc<History>,
        nodes: Vec<SocketAddr>,
        (urls, seed): (Vec<String>, u64),
    ) -> Self {
        let participants = roles.into_iter().map(|role| Participant { role, process: Mutex::new(None) }).collect();
        Self { participants, history, nodes, database_urls: urls, seed, started: AtomicU32::new(1) }
    }

    /// Starts a process for every role that has none.
    pub(crate) async fn start_missing(&self) -> anyhow::Result<()> {
        for participant in &self.participants {
            let mut process = participant.process.lock().await;
            if process.is_none() {
                *process = Some(self.start(&participant.role)?);
            }
        }
        Ok(())
    }

    /// Starts a process for a role.
    pub(crate) fn start(&self, role: &Role) -> anyhow::Result<Process> {
        let actor = self.started.fetch_add(1, Ordering::Relaxed);
        let seed = self.seed.wrapping_mul(0x9E37_79B9).wrapping_add(u64::from(actor));
        let database_url = self.database_urls[actor as usize % self.database_urls.len()].clone();
        let nodes = self.nodes.clone();
        let assignment = Assignment { actor, seed, nodes, database_url, role: role.clone() };
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(CHILD).arg(serde_json::to_string(&assignment)?);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().context("cannot start a child")?;
        let stdin = child.stdin.take().context("no standard input")?;
        let lines = BufReader::new(child.stdout.take().context("no standard output")?).lines();
        let history = Arc::clone(&self.history);
        let mut reader = JoinSet::new();
        reader.spawn(read(lines, history));
        Ok(Process { child, stdin, reader })
    }

    /// Sends a command to the running processes of some roles. A process that is being hurt at this
    /// moment does not receive it.
    pub(crate) async fn send(&self, command: &str, to: impl Fn(&Role) -> bool) {
        for participant in self.participants.iter().filter(|participant| to(&participant.role)) {
            let Ok(mut process) = participant.process.try_lock() else { continue };
            if let Some(process) = process.as_mut() {
                let _ = process.stdin.write_all(format!("{command}\n").as_bytes()).await;
            }
        }
    }

    /// Asks the processes of some roles to leave, and waits for their last records.
    pub(crate) async fn end(&self, which: impl Fn(&Role) -> bool, patience: Duration) {
        self.send("leave", &which).await;
        for participant in self.participants.iter().filter(|participant| which(&participant.role)) {
            if let Some(mut process) = participant.process.lock().await.take() {
                // Their standard input stays open: its end would mean that the run is gone, and
                // they would stop in the middle of a call.
                if timeout(patience, process.child.wait()).await.is_err() {
                    let _ = process.child.kill().await;
                }
                let _ = timeout(patience, process.reader.join_next()).await;
            }
        }
    }
}

impl Process {
    /// Sends SIGKILL, and reads everything that the process had written before.
    pub(crate) async fn kill(mut self) {
        let _ = self.child.kill().await;
        let _ = timeout(Duration::from_secs(30), self.reader.join_next()).await;
    }
}

/// Lines that are whole are records. The last one of a killed process may not be.
async fn read<R: tokio::io::AsyncBufRead + Unpin>(mut lines: tokio::io::Lines<R>, history: Arc<History>) {
    while let Ok(Some(line)) = lines.next_line().await {
        if let Ok(record) = serde_json::from_str::<Record>(&line) {
            history.add(record);
        }
    }
}
