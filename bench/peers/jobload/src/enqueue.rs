//! Enqueues a number of jobs, or as many as it can in a while.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{Queue, Way, jobs};

/// What to enqueue, and how.
#[derive(Debug, Deserialize)]
pub(crate) struct Load {
    queue: String,
    way: Way,
    /// The first number; the others follow.
    from: u64,
    /// How many jobs at most.
    count: u64,
    /// How many in a call.
    batch: u64,
    /// How many call at once.
    callers: usize,
    /// Percent that are for later.
    #[serde(default)]
    scheduled: u64,
    /// When to stop calling, if the jobs have not run out.
    millis: u64,
}

/// Returns how many were enqueued, and how long it took.
pub(crate) async fn run(queue: &dyn Queue, load: &Load) -> anyhow::Result<Value> {
    let next = AtomicU64::new(load.from);
    let (began, span) = (Instant::now(), Duration::from_millis(load.millis));
    let call = async || {
        while began.elapsed() < span {
            let Some(numbers) = take(&next, load) else { break };
            queue.enqueue(&load.queue, load.way, &jobs(numbers, load.scheduled)).await?;
        }
        anyhow::Ok(())
    };
    try_join_all((0..load.callers).map(|_| call())).await?;
    let done = next.into_inner().min(load.from + load.count) - load.from;
    Ok(json!({ "count": done, "seconds": began.elapsed().as_secs_f64() }))
}

/// The numbers of the next call.
fn take(next: &AtomicU64, load: &Load) -> Option<Range<u64>> {
    let end = load.from + load.count;
    let first = next.fetch_add(load.batch, Ordering::Relaxed);
    (first < end).then(|| first..end.min(first + load.batch))
}
