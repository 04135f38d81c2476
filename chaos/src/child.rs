//! Producers, consumers and workers, each a process of its own that can be killed at any
//! instruction.
//!
//! This program again, under a hidden first argument. A child writes what it sees to its standard
//! output, a record a line: the intent before a call and the outcome after it, each with one write.
//! Commands to pause and to leave arrive on its standard input, whose end means that the run is
//! gone.

mod consumer;
mod flows;
mod foreign;
mod forwarder;
mod http;
mod producer;
mod recorder;
mod worker;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, BufReader};

use super::history::Key;
use super::layout::Role;
use foreign::Purpose;
use http::HttpClient;
use recorder::Recorder;

/// The first argument that makes this program such a child.
pub const CHILD: &str = "chaos-child";

/// What a child needs to start; its second argument.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Assignment {
    /// Its number in the history; also where its keys begin.
    pub(crate) actor: u32,
    pub(crate) seed: u64,
    pub(crate) nodes: Vec<SocketAddr>,
    /// Through a proxy that may fail.
    pub(crate) database_url: String,
    pub(crate) role: Role,
}

/// The key in a message's payload.
pub(crate) fn payload_key(payload: &[u8]) -> Option<Key> {
    serde_json::from_slice::<consumer::Payload>(payload).ok().map(|payload| payload.k)
}

/// What a child works with.
struct Kit {
    assignment: Assignment,
    recorder: Recorder,
    http: HttpClient,
    random: fastrand::Rng,
    control: Arc<Control>,
}

/// The commands of the run that are in force.
#[derive(Debug, Default)]
struct Control {
    held: AtomicBool,
    brisk: AtomicBool,
    leaving: AtomicBool,
}

impl Control {
    fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::Relaxed)
    }

    /// Clients neither work slowly nor hang up: the queue is being measured.
    fn is_brisk(&self) -> bool {
        self.brisk.load(Ordering::Relaxed)
    }

    /// Waits while producers are held back.
    async fn while_held(&self) {
        while self.held.load(Ordering::Relaxed) && !self.is_leaving() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// The child's side.
pub fn run(assignment: &str) -> anyhow::Result<()> {
    let assignment: Assignment = serde_json::from_str(assignment)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let done = runtime.block_on(async {
        let control = Arc::new(Control::default());
        let random = fastrand::Rng::with_seed(assignment.seed);
        let http = HttpClient::new(assignment.nodes.clone(), assignment.seed);
        let recorder = Recorder::new(assignment.actor);
        let mut kit = Kit { assignment, recorder, http, random, control: Arc::clone(&control) };
        tokio::select! {
            done = work(&mut kit) => done,
            () = listen(&control) => Ok(()),
        }
    });
    // The thread that reads standard input would hold the process back until the run is gone.
    runtime.shutdown_background();
    done
}

async fn work(kit: &mut Kit) -> anyhow::Result<()> {
    match kit.assignment.role.clone() {
        Role::Producer { queue, partitions, batch, rate, manner } => {
            producer::Producer { queue, partitions, batch, rate, manner }.run(kit).await
        }
        Role::Foreign { queue, partitions, rate } => {
            foreign::run(kit, &Purpose::Messages { queue, partitions }, rate).await
        }
        Role::Enqueuer { rate } => foreign::run(kit, &Purpose::Jobs, rate).await,
        Role::Consumer { queue, group, batch, partitions, manner } => {
            consumer::Consumer { queue, group, batch, partitions, manner }.run(kit).await
        }
        Role::Forwarder => forwarder::run(kit).await,
        Role::Worker => worker::run(kit).await,
        Role::Flows { rate } => flows::run(kit, rate).await,
    }
}

/// Follows the run's commands; returns when the run is gone.
async fn listen(control: &Control) {
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        match line.as_str() {
            "hold" => control.held.store(true, Ordering::Relaxed),
            "go" => control.held.store(false, Ordering::Relaxed),
            "brisk" => control.brisk.store(true, Ordering::Relaxed),
            "leave" => control.leaving.store(true, Ordering::Relaxed),
            _ => {}
        }
    }
}
