//! A job queue under measurement: one process that enqueues and some that work, on a database of
//! their own.
//!
//! Every job has a number, every process notes which it ran, and when workers stop, what ran is
//! compared with what the database still has: a job that is neither was lost, one that is both, or
//! that ran in two places, ran twice.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use futures_util::future::try_join_all;
use reveille_testkit::scenario::Plain;
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::peer::{Peer, number, order};

/// The queue of all jobs, unless a call names another.
pub(in crate::scenarios) const QUEUE: &str = "bench";
/// Jobs in one call, and calls at once, wherever the enqueueing is not what is measured.
const BATCH: u64 = 1000;
const CALLERS: u64 = 2;

/// Whose settings a worker runs with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::scenarios) enum Settings {
    Default,
    Tuned,
}

impl Settings {
    pub(in crate::scenarios) const BOTH: [Self; 2] = [Self::Default, Self::Tuned];

    pub(in crate::scenarios) fn word(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Tuned => "tuned",
        }
    }
}

/// How a team works in one measurement.
#[derive(Debug, Clone, Copy)]
pub(in crate::scenarios) struct Shift {
    pub(in crate::scenarios) settings: Settings,
    pub(in crate::scenarios) processes: usize,
    /// Ready jobs that wait all the time.
    pub(in crate::scenarios) depth: u64,
    /// Percent of all jobs that are for an hour later.
    pub(in crate::scenarios) scheduled: u64,
    /// Numbers there are for jobs: more are never enqueued.
    pub(in crate::scenarios) limit: u64,
}

/// How many jobs were lost or ran twice.
#[derive(Debug, Default, Clone, Copy)]
pub(in crate::scenarios) struct Account {
    pub(in crate::scenarios) lost: u64,
    pub(in crate::scenarios) twice: u64,
}

/// One queue with its processes.
#[derive(Debug)]
pub(in crate::scenarios) struct Team {
    pub(in crate::scenarios) name: &'static str,
    pub(in crate::scenarios) producer: Peer,
    pub(in crate::scenarios) workers: Vec<Peer>,
    /// How it can enqueue, the fastest last.
    pub(in crate::scenarios) ways: Vec<String>,
    shift: Option<Shift>,
    /// The number of the next job.
    next: u64,
    /// Jobs that ran, at the last refill.
    refilled: u64,
}

impl Team {
    /// A database of its own, a producer and `workers` processes that do nothing yet.
    pub(in crate::scenarios) async fn start(
        cluster: &Cluster,
        peers: &Path,
        name: &'static str,
        workers: usize,
    ) -> anyhow::Result<Self> {
        let admin = Plain::connect(&cluster.url()).await?;
        admin.client.batch_execute(&format!("create database {name}")).await?;
        let url = cluster.url_of(name);
        let child = || match name {
            super::OURS => Peer::start(name, &std::env::current_exe()?, &[super::CHILD, &url]),
            peer => Peer::start(name, &peers.with_file_name(format!("{peer}-peer")), &[&url]),
        };
        let mut producer = child()?;
        let installed = producer.ask(order("install")).await?;
        let ways = serde_json::from_value(installed["ways"].clone())?;
        let workers: anyhow::Result<Vec<Peer>> = (0..workers).map(|_| child()).collect();
        Ok(Self { name, producer, workers: workers?, ways, shift: None, next: 0, refilled: 0 })
    }

    /// An empty queue.
    pub(in crate::scenarios) async fn clear(&mut self) -> anyhow::Result<()> {
        self.producer.ask(order("clear")).await?;
        self.next = 0;
        Ok(())
    }

    /// Enqueues for a while, and returns how many per second that were.
    pub(in crate::scenarios) async fn enqueue_for(
        &mut self,
        way: &str,
        callers: u64,
        span: Duration,
    ) -> anyhow::Result<f64> {
        let batch = if way == "one" { 1 } else { BATCH };
        let millis = u64::try_from(span.as_millis())?;
        let order = json!({
            "do": "enqueue", "queue": QUEUE, "way": way, "from": self.next, "count": u32::MAX, "batch": batch,
            "callers": callers, "millis": millis,
        });
        let done = self.producer.ask(order).await?;
        self.next += done["count"].as_u64().context("no count")?;
        Ok(number(&done, "count")? / number(&done, "seconds")?)
    }

    /// Fills an empty queue to the depth of the shift, and begins to work.
    pub(in crate::scenarios) async fn begin(&mut self, shift: Shift) -> anyhow::Result<()> {
        self.clear().await?;
        self.shift = Some(shift);
        self.refilled = 0;
        self.add(shift.depth).await?;
        self.start_workers(shift.settings, shift.processes, &[QUEUE], shift.limit).await
    }

    /// Lets the first `processes` workers begin.
    pub(in crate::scenarios) async fn start_workers(
        &mut self,
        settings: Settings,
        processes: usize,
        queues: &[&str],
        limit: u64,
    ) -> anyhow::Result<()> {
        let order = json!({ "do": "work", "queues": queues, "settings": settings.word(), "limit": limit });
        try_join_all(self.workers[..processes].iter_mut().map(|worker| worker.ask(order.clone()))).await?;
        Ok(())
    }

    /// Jobs per second for a while, with the queue kept as deep as it is.
    pub(in crate::scenarios) async fn keep_working(&mut self, span: Duration) -> anyhow::Result<f64> {
        let (began, before) = (Instant::now(), self.refill().await?);
        loop {
            let ran = self.refill().await?;
            if began.elapsed() >= span {
                #[expect(clippy::cast_precision_loss, reason = "a rate has three significant digits")]
                let ran = (ran - before) as f64;
                return Ok(ran / began.elapsed().as_secs_f64());
            }
        }
    }

    /// How many jobs have run. As many are enqueued again, unless they are too few for a call.
    async fn refill(&mut self) -> anyhow::Result<u64> {
        let ran = self.ran().await?;
        if ran - self.refilled < BATCH / 4 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        } else {
            self.add(ran - self.refilled).await?;
            self.refilled = ran;
        }
        Ok(ran)
    }

    /// How many jobs have run, in all processes.
    pub(in crate::scenarios) async fn ran(&mut self) -> anyhow::Result<u64> {
        let counts = try_join_all(self.workers.iter_mut().map(|worker| worker.ask(order("count")))).await?;
        Ok(counts.iter().filter_map(|count| count["ran"].as_u64()).sum())
    }

    /// Enqueues so many ready jobs, in the fastest way there is, and with them those that are for
    /// later.
    async fn add(&mut self, ready: u64) -> anyhow::Result<()> {
        let shift = self.shift.context("no worker runs")?;
        let count = (ready * 100 / (100 - shift.scheduled)).min(shift.limit - self.next);
        let order = json!({
            "do": "enqueue", "queue": QUEUE, "way": self.ways.last(), "from": self.next, "count": count, "batch": BATCH,
            "callers": CALLERS, "scheduled": shift.scheduled, "millis": 300_000,
        });
        self.producer.ask(order).await?;
        self.next += count;
        Ok(())
    }

    /// Notes that jobs with the next `count` numbers are enqueued elsewhere; returns the first
    /// number.
    pub(in crate::scenarios) fn number(&mut self, count: u64) -> u64 {
        self.next += count;
        self.next - count
    }

    /// Stops the workers, and compares what they ran with what the database has.
    pub(in crate::scenarios) async fn end(&mut self) -> anyhow::Result<Account> {
        let ends = try_join_all(self.workers.iter_mut().map(|worker| worker.ask(order("stop")))).await?;
        let left = self.producer.ask(order("left")).await?;
        let left = left["left"].as_u64().context("no number of jobs left")?;
        self.shift = None;
        let runs: u64 = ends.iter().flat_map(|end| [end["ran"].as_u64(), end["twice"].as_u64()]).flatten().sum();
        let seen = different(&ends);
        Ok(Account {
            lost: self.next.saturating_sub(seen + left),
            twice: (runs - seen) + (seen + left).saturating_sub(self.next),
        })
    }
}

/// How many different jobs ran, one hexadecimal digit for four of them.
fn different(ends: &[Value]) -> u64 {
    let seen: Vec<&[u8]> = ends.iter().filter_map(|end| Some(end["seen"].as_str()?.as_bytes())).collect();
    let longest = seen.iter().map(|digits| digits.len()).max().unwrap_or(0);
    let digit = |digits: &&[u8], place: usize| {
        let digit = digits.get(place).and_then(|digit| char::from(*digit).to_digit(16));
        digit.unwrap_or(0)
    };
    let four = |place: usize| seen.iter().map(|digits| digit(digits, place)).fold(0, |all, one| all | one).count_ones();
    (0..longest).map(|place| u64::from(four(place))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_ran_in_two_processes_is_one_job() {
        let ends = [json!({ "seen": "30" }), json!({ "seen": "61" }), json!({ "seen": "" })];

        assert_eq!(different(&ends), 4);
    }
}
