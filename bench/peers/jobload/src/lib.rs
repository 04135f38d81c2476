//! What the scenarios `jobs` and `jobs-latency` do with a job queue, whichever it is.
//!
//! Each queue is measured in processes of its own: a small program that implements [`Queue`] for it
//! and calls [`serve`]. It reads commands on standard input, one JSON object a line, and answers
//! each with one line on standard output. Counting, timing and the rate of enqueues are written
//! once, here, so that all queues are measured in the same way.

mod books;
mod command;
mod enqueue;
mod steady;

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

pub use books::{Books, now};
pub use command::serve;

/// What a no-op job carries: its number, and enough bytes to weigh as much as an ordinary job.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Args {
    pub n: u64,
    pub pad: String,
}

impl Args {
    #[must_use]
    pub fn new(n: u64) -> Self {
        Self { n, pad: "x".repeat(80) }
    }
}

/// How jobs are enqueued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// Each in a call and a commit of its own.
    One,
    /// Many in one call.
    Batch,
    /// Many by COPY.
    Copy,
    /// One, as a program in any other language would: a plain statement on a plain connection.
    Sql,
}

/// Which settings a worker runs with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Settings {
    /// The documented defaults.
    Default,
    /// Chosen for throughput from its documentation and source; not searched for.
    Tuned,
}

/// A job and when it may run.
#[derive(Debug, Clone, Copy)]
pub struct Job {
    pub n: u64,
    pub delay: Option<Duration>,
}

/// A queue under measurement.
#[async_trait]
pub trait Queue: Send + Sync + 'static {
    /// Makes its schema, if it is not there.
    async fn install(&self) -> anyhow::Result<()>;

    /// The ways it has, from the plainest to the fastest.
    fn ways(&self) -> Vec<&'static str>;

    /// Stores jobs in the queue of this name; they are durable when this returns.
    async fn enqueue(&self, queue: &str, way: Way, jobs: &[Job]) -> anyhow::Result<()>;

    /// Starts a worker for these queues, whose handlers call [`Books::ran`] and nothing else.
    async fn work(&self, queues: &[String], settings: Settings, books: Arc<Books>) -> anyhow::Result<Box<dyn Working>>;

    /// How many jobs in the database have not ended.
    async fn left(&self) -> anyhow::Result<u64>;

    /// Empties the queue, between two measurements.
    async fn clear(&self) -> anyhow::Result<()>;
}

/// A worker that runs.
#[async_trait]
pub trait Working: Send {
    /// Finishes what it has begun, and gives back what it has not.
    async fn stop(self: Box<Self>) -> anyhow::Result<()>;
}

/// Jobs with these numbers, of which the given share (in percent) is for an hour later.
fn jobs(numbers: Range<u64>, scheduled: u64) -> Vec<Job> {
    let later = Duration::from_hours(1);
    numbers.map(|n| Job { n, delay: (n % 100 < scheduled).then_some(later) }).collect()
}
