//! Producers, consumers and workers, each a process of its own that can be killed at any
//! instruction.
//!
//! This program again, under a hidden first argument. What a child sees it writes to its standard
//! output, a record a line: the intent before a call and the outcome after it, each with one write.
//! Its standard input says when to pause and when to leave; its end means that the run is gone.

mod consumer;
mod door;
mod flows;
mod foreign;
mod pen;
mod producer;
mod relay;
mod worker;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, BufReader};

use super::history::Key;
use super::layout::Role;
use door::Door;
use foreign::Purpose;
use pen::Pen;

/// The first argument that makes this program such a child.
pub const CHILD: &str = "chaos-child";

/// What a child is told when it starts.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Orders {
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
    orders: Orders,
    pen: Pen,
    door: Door,
    random: fastrand::Rng,
    mood: Arc<Mood>,
}

/// What the run wants of its children now.
#[derive(Debug, Default)]
struct Mood {
    held: AtomicBool,
    brisk: AtomicBool,
    leaving: AtomicBool,
}

impl Mood {
    fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::Relaxed)
    }

    /// Nobody dawdles or hangs up: what is measured now is the queue.
    fn is_brisk(&self) -> bool {
        self.brisk.load(Ordering::Relaxed)
    }

    /// Waits while producers are held back.
    async fn until_wanted(&self) {
        while self.held.load(Ordering::Relaxed) && !self.is_leaving() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// The child's side.
pub fn run(orders: &str) -> anyhow::Result<()> {
    let orders: Orders = serde_json::from_str(orders)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let done = runtime.block_on(async {
        let mood = Arc::new(Mood::default());
        let random = fastrand::Rng::with_seed(orders.seed);
        let door = Door::new(orders.nodes.clone(), orders.seed);
        let mut kit = Kit { pen: Pen::new(orders.actor), orders, door, random, mood: Arc::clone(&mood) };
        tokio::select! {
            done = work(&mut kit) => done,
            () = listen(&mood) => Ok(()),
        }
    });
    // The thread that reads standard input would hold the process back until the run is gone.
    runtime.shutdown_background();
    done
}

async fn work(kit: &mut Kit) -> anyhow::Result<()> {
    match kit.orders.role.clone() {
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
        Role::Relay => relay::run(kit).await,
        Role::Worker => worker::run(kit).await,
        Role::Flows { rate } => flows::run(kit, rate).await,
    }
}

/// Follows the run's wishes; returns when the run is gone.
async fn listen(mood: &Mood) {
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        match line.as_str() {
            "hold" => mood.held.store(true, Ordering::Relaxed),
            "go" => mood.held.store(false, Ordering::Relaxed),
            "brisk" => mood.brisk.store(true, Ordering::Relaxed),
            "leave" => mood.leaving.store(true, Ordering::Relaxed),
            _ => {}
        }
    }
}
