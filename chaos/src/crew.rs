//! The child processes of a run: started, heard, hurt, started again.

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

use super::child::{CHILD, Orders};
use super::history::{History, Record};
use super::layout::Role;

/// Everybody, and what they are told.
#[derive(Debug)]
pub(crate) struct Crew {
    pub(crate) members: Vec<Member>,
    history: Arc<History>,
    nodes: Vec<SocketAddr>,
    /// Ways to PostgreSQL, given to one after another.
    database_urls: Vec<String>,
    seed: u64,
    lives: AtomicU32,
}

/// One place in the crew, filled by one process after another.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) role: Role,
    /// Held by whoever hurts it.
    pub(crate) life: Mutex<Option<Life>>,
}

/// A process and the reader of its history.
#[derive(Debug)]
pub(crate) struct Life {
    pub(crate) child: Child,
    stdin: ChildStdin,
    reader: JoinSet<()>,
}

impl Crew {
    pub(crate) fn new(
        roles: Vec<Role>,
        history: Arc<History>,
        nodes: Vec<SocketAddr>,
        (urls, seed): (Vec<String>, u64),
    ) -> Self {
        let members = roles.into_iter().map(|role| Member { role, life: Mutex::new(None) }).collect();
        Self { members, history, nodes, database_urls: urls, seed, lives: AtomicU32::new(1) }
    }

    /// Starts everybody who is not there.
    pub(crate) async fn muster(&self) -> anyhow::Result<()> {
        for member in &self.members {
            let mut life = member.life.lock().await;
            if life.is_none() {
                *life = Some(self.enlist(&member.role)?);
            }
        }
        Ok(())
    }

    /// Starts a process for a role.
    pub(crate) fn enlist(&self, role: &Role) -> anyhow::Result<Life> {
        let actor = self.lives.fetch_add(1, Ordering::Relaxed);
        let seed = self.seed.wrapping_mul(0x9E37_79B9).wrapping_add(u64::from(actor));
        let database_url = self.database_urls[actor as usize % self.database_urls.len()].clone();
        let nodes = self.nodes.clone();
        let orders = Orders { actor, seed, nodes, database_url, role: role.clone() };
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(CHILD).arg(serde_json::to_string(&orders)?);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().context("cannot start a child")?;
        let stdin = child.stdin.take().context("no standard input")?;
        let lines = BufReader::new(child.stdout.take().context("no standard output")?).lines();
        let history = Arc::clone(&self.history);
        let mut reader = JoinSet::new();
        reader.spawn(read(lines, history));
        Ok(Life { child, stdin, reader })
    }

    /// Tells everybody of a kind something; whoever is not there hears nothing.
    pub(crate) async fn tell(&self, what: &str, whom: impl Fn(&Role) -> bool) {
        for member in self.members.iter().filter(|member| whom(&member.role)) {
            // Whoever is being hurt just now hears it the next time.
            let Ok(mut life) = member.life.try_lock() else { continue };
            if let Some(life) = life.as_mut() {
                let _ = life.stdin.write_all(format!("{what}\n").as_bytes()).await;
            }
        }
    }

    /// Sends some home and waits for their last words.
    pub(crate) async fn dismiss(&self, whom: impl Fn(&Role) -> bool, patience: Duration) {
        self.tell("leave", &whom).await;
        for member in self.members.iter().filter(|member| whom(&member.role)) {
            if let Some(mut life) = member.life.lock().await.take() {
                // Their standard input stays open, so that their last words are those of somebody
                // who leaves by himself.
                if timeout(patience, life.child.wait()).await.is_err() {
                    let _ = life.child.kill().await;
                }
                let _ = timeout(patience, life.reader.join_next()).await;
            }
        }
    }
}

impl Life {
    /// SIGKILL, and everything it had written before.
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
