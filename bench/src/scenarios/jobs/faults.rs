//! Two parts of our own queue alone: a worker that is killed at work, and a job whose transaction
//! was open for long.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::Context;
use reveille_testkit::scenario::Plain;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::ours::{CHILD, HOLDS, enqueue_by_sql};
use super::{DEPTH, Field, OURS, QUEUE, ROOM_PER_S, Settings};
use crate::peer::{Peer, numbers, order};

/// Jobs that run when their worker is killed.
const HELD: u64 = 100;
/// How long an enqueueing transaction stays open.
const OPEN: Duration = Duration::from_secs(5);
/// What takes longer than this counts as a failure.
const PATIENCE: Duration = Duration::from_secs(60);

impl Field<'_> {
    /// `kill -9` of a worker process in the middle of a hundred jobs, while another one waits.
    pub(super) async fn killed(&mut self) -> anyhow::Result<()> {
        if !self.bench.wants("kill -9 of a worker with 100 running jobs") {
            return Ok(());
        }
        for _ in 0..self.bench.pick(1, 3) {
            let url = self.cluster.url_of(OURS);
            let (plain, team) = (Plain::connect(&url).await?, &mut self.teams[0]);
            team.clear().await?;
            let mut victim = Peer::start(OURS, &std::env::current_exe()?, &[CHILD, &url, HOLDS])?;
            victim.ask(json!({ "do": "work", "queues": [QUEUE], "settings": "default", "limit": HELD })).await?;
            let first = team.number(HELD);
            let enqueue = json!({
                "do": "enqueue", "queue": QUEUE, "way": "batch", "from": first, "count": HELD, "batch": HELD, "callers": 1,
                "millis": 60_000,
            });
            team.producer.ask(enqueue).await?;
            until("all jobs run", async || Ok(victim.ask(order("count")).await?["ran"].as_u64() == Some(HELD))).await?;
            team.start_workers(Settings::Default, 1, &[QUEUE], HELD).await?;

            // Dropped, it gets SIGKILL.
            drop(victim);
            // A renewal that it had sent is answered by now: these leases are its last.
            sleep(Duration::from_millis(100)).await;
            let leases = leases(&plain).await?;
            until("all jobs run again", async || Ok(team.ran().await? >= HELD)).await?;

            let began = team.workers[0].ask(json!({ "do": "began", "from": first, "count": HELD })).await?;
            let account = team.end().await?;
            let began = (first..).zip(numbers(&began, "began"));
            let late = began.map(|(n, began)| leases.get(&n).map(|end| (began - end) / 1000.0));
            let late: Vec<f64> =
                late.collect::<Option<_>>().context("a job was not held when its worker was killed")?;
            let early = late.iter().filter(|late| **late < 0.0).count();
            anyhow::ensure!(early == 0, "{early} jobs began again before the end of their leases");
            self.found.killed(late.into_iter().fold(0.0, f64::max), account);
            self.found.account(0, account)?;
        }
        Ok(())
    }

    /// A job that is older than thousands of others when it appears.
    pub(super) async fn late_commit(&mut self) -> anyhow::Result<()> {
        if !self.bench.wants("an enqueue whose transaction is open for 5 s") {
            return Ok(());
        }
        let rounds = self.bench.pick(1, 3);
        let plain = Plain::connect(&self.cluster.url_of(OURS)).await?;
        let mut shift = self.shift(Settings::Default, 1, DEPTH, 0);
        shift.limit = DEPTH + (rounds + 1) * (OPEN.as_secs() + 5) * ROOM_PER_S / 3;
        let team = &mut self.teams[0];
        team.begin(shift).await?;
        team.keep_working(Duration::from_secs(1)).await?;
        for _ in 0..rounds {
            let n = team.number(1);
            plain.client.batch_execute("begin").await?;
            enqueue_by_sql(&plain, QUEUE, n).await?;
            team.keep_working(OPEN).await?;
            plain.client.batch_execute("commit").await?;
            let committed = jobload::now();
            let end = Instant::now() + PATIENCE;
            let began = loop {
                team.keep_working(Duration::from_millis(50)).await?;
                let answer = team.workers[0].ask(json!({ "do": "began", "from": n, "count": 1 })).await?;
                match answer["began"][0].as_u64() {
                    Some(began) if began > 0 => break began,
                    _ => anyhow::ensure!(Instant::now() < end, "the job that was committed late was not run"),
                }
            };
            #[expect(clippy::cast_precision_loss, reason = "a time of some milliseconds")]
            self.found.late_commit(began.saturating_sub(committed) as f64 / 1000.0);
        }
        let account = team.end().await?;
        self.found.account(0, account)
    }
}

/// When the lease of each job that is held ends, in microseconds of the machine's clock, by the
/// job's number.
async fn leases(plain: &Plain) -> anyhow::Result<HashMap<u64, f64>> {
    let held = "select (convert_from(job_body.args, 'UTF8')::json ->> 'n')::bigint,
                       (extract(epoch from job.due_at) * 1000000)::float8
                from reveille.job join reveille.job_body on job_body.id = job.id where job.nonce is not null";
    let rows = plain.client.query(held, &[]).await?;
    rows.iter().map(|row| Ok((u64::try_from(row.get::<_, i64>(0))?, row.get(1)))).collect()
}

/// Checks again and again, until it is so.
async fn until(what: &str, mut is_so: impl AsyncFnMut() -> anyhow::Result<bool>) -> anyhow::Result<()> {
    let end = Instant::now() + PATIENCE;
    while !is_so().await? {
        anyhow::ensure!(Instant::now() < end, "waited in vain until {what}");
        sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}
