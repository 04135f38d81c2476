//! Jobs that do nothing: our queue beside awa, `graphile_worker` and apalis-postgres, in one run on
//! one durable cluster.
//!
//! Every queue has its own database, a process that enqueues and up to four that work, through its
//! own client. A producer puts back what was worked, so that the queue stays as deep as it is: what
//! is measured is what can be kept up. Rounds alternate between the queues, so that a noisy minute
//! hits all of them. Each is measured with its documented defaults, and with settings chosen for
//! throughput; those were not searched for. At the end our own is killed at work, and gets a job
//! whose transaction was open for long.

mod faults;
mod found;
mod ours;
mod team;

use std::time::Duration;

use reveille_testkit::scenario::{Plain, Report, progress};

use crate::bench::Bench;
use crate::cluster::Cluster;
use crate::peer::build_peers;
use found::Found;
pub(crate) use ours::{CHILD, measure};
use team::Shift;
pub(super) use team::{Account, QUEUE, Settings, Team};

/// Ours, the first of the names.
pub(super) const OURS: &str = "reveille";
/// The names are those of the databases and of the peers' programs too.
pub(super) const NAMES: [&str; 4] = [OURS, "awa", "graphile", "apalis"];
pub(super) const VERSIONS: &str =
    "awa 0.6.9, graphile_worker 0.14.1, apalis-postgres 1.0.0; the settings of each: bench/peers/README.md";

const PROCESSES: [usize; 2] = [1, 4];
const DEPTH: u64 = 10_000;
const DEEP: u64 = 1_000_000;
const CALLERS_OF_ONE: u64 = 16;
const CALLERS: u64 = 2;
/// More than any queue works in a measurement.
const ROOM_PER_S: u64 = 150_000;

pub(crate) async fn run(bench: &Bench) -> anyhow::Result<Report> {
    let peers = build_peers().await?;
    progress("starting a durable PostgreSQL");
    let cluster = Cluster::start_with(|options| {
        let options = options.setting("shared_buffers", "1GB").setting("max_wal_size", "8GB");
        let options = options.setting("max_connections", "500").setting("autovacuum_naptime", "5s");
        // Or a checkpoint would hit the queue that happens to be measured then.
        options.setting("checkpoint_timeout", "30min")
    })?;
    let version = cluster.database().await?.server_version().to_string();
    let mut teams = Vec::new();
    for name in NAMES {
        progress(&format!("installing {name}"));
        teams.push(Team::start(&cluster, &peers, name, PROCESSES[1]).await?);
    }
    let mut field = Field { bench, cluster: &cluster, teams, found: Found::default() };
    field.enqueueing().await?;
    field.rounds().await?;
    field.scheduled().await?;
    field.held_open().await?;
    field.killed().await?;
    field.late_commit().await?;
    field.deep().await?;
    let mut report = Report::new("jobs", format!("PostgreSQL {version}, fsync on; {VERSIONS}"));
    field.found.add_to(&mut report);
    Ok(report)
}

/// What is measured on what.
struct Field<'b> {
    bench: &'b Bench,
    cluster: &'b Cluster,
    teams: Vec<Team>,
    found: Found,
}

impl Field<'_> {
    async fn enqueueing(&mut self) -> anyhow::Result<()> {
        if !self.bench.wants("enqueue") {
            return Ok(());
        }
        for round in 1..=self.bench.pick(1, 3) {
            for (place, team) in self.teams.iter_mut().enumerate() {
                progress(&format!("round {round}: enqueueing on {}", team.name));
                team.clear().await?;
                for way in team.ways.clone() {
                    let callers = if way == "one" { CALLERS_OF_ONE } else { CALLERS };
                    let rate = team.enqueue_for(&way, callers, self.bench.span()).await?;
                    self.found.enqueued(place, &way, rate);
                }
            }
        }
        Ok(())
    }

    /// With 1 and with 4 processes, at defaults and tuned.
    async fn rounds(&mut self) -> anyhow::Result<()> {
        if !self.bench.wants("work") {
            return Ok(());
        }
        for round in 1..=self.bench.pick(1, 3) {
            // A quick run has no time for every pair.
            for (processes, settings) in loads().take(self.bench.pick(3, 4)) {
                for place in 0..self.teams.len() {
                    let what = format!("round {round}: {processes} processes, {} settings", settings.word());
                    let shift = self.shift(settings, processes, DEPTH, 0);
                    let rate = self.measured(place, shift, &what).await?;
                    self.found.worked(place, settings, processes, rate);
                }
            }
        }
        Ok(())
    }

    async fn scheduled(&mut self) -> anyhow::Result<()> {
        if !self.bench.wants("scheduled") {
            return Ok(());
        }
        for place in 0..self.bench.pick(1, self.teams.len()) {
            let shift = self.shift(Settings::Default, 1, DEPTH, 30);
            let rate = self.measured(place, shift, "30 % scheduled").await?;
            self.found.scheduled(place, rate);
        }
        Ok(())
    }

    /// A queue of a million beside one of ten thousand, one right after the other.
    async fn deep(&mut self) -> anyhow::Result<()> {
        if !self.bench.wants("depth of a million") {
            return Ok(());
        }
        for place in 0..self.bench.pick(1, self.teams.len()) {
            let shallow = self.shift(Settings::Default, 1, DEPTH, 0);
            let shallow = self.measured(place, shallow, "10,000 jobs deep").await?;
            let deep = self.shift(Settings::Default, 1, DEEP, 0);
            let deep = self.measured(place, deep, "1,000,000 jobs deep").await?;
            self.found.deep(place, shallow, deep);
            self.teams[place].clear().await?;
        }
        Ok(())
    }

    /// A transaction of another client keeps every dead row alive.
    async fn held_open(&mut self) -> anyhow::Result<()> {
        let seconds = self.bench.pick(10, 60);
        if !self.bench.wants(&format!("a transaction held open for {seconds} s")) {
            return Ok(());
        }
        for place in 0..self.bench.pick(1, 2) {
            let slice = Duration::from_secs(self.bench.pick(2, 10));
            let mut shift = self.shift(Settings::Default, 1, DEPTH, 0);
            shift.limit = DEPTH + (seconds + 20) * ROOM_PER_S / 3;
            let url = self.cluster.url_of(self.teams[place].name);
            let team = &mut self.teams[place];
            progress(&format!("a transaction held open, on {}", team.name));
            team.begin(shift).await?;
            team.keep_working(Duration::from_secs(1)).await?;
            let start = team.keep_working(slice).await?;
            let holder = Plain::connect(&url).await?;
            holder.client.batch_execute("begin isolation level repeatable read; select 1 from pg_class").await?;
            let mut held = start;
            for _ in 0..seconds / slice.as_secs() {
                held = team.keep_working(slice).await?;
            }
            holder.client.batch_execute("commit").await?;
            let account = team.end().await?;
            self.found.account(place, account)?;
            self.found.held(place, start, held);
        }
        Ok(())
    }

    fn shift(&self, settings: Settings, processes: usize, depth: u64, scheduled: u64) -> Shift {
        let seconds = (self.warm_up() + self.span()).as_secs() + 2;
        let limit = (depth + seconds * ROOM_PER_S) * 100 / (100 - scheduled);
        Shift { settings, processes, depth, scheduled, limit }
    }

    /// Jobs per second of one team.
    async fn measured(&mut self, place: usize, shift: Shift, what: &str) -> anyhow::Result<f64> {
        let (warm_up, span) = (self.warm_up(), self.span());
        let team = &mut self.teams[place];
        progress(&format!("{what}, on {}", team.name));
        team.begin(shift).await?;
        team.keep_working(warm_up).await?;
        let rate = team.keep_working(span).await?;
        let account = team.end().await?;
        progress(&format!("{}: {rate:.0} jobs/s", team.name));
        self.found.account(place, account)?;
        Ok(rate)
    }

    /// Connections, plans and the first gap in the queue.
    fn warm_up(&self) -> Duration {
        self.bench.pick(Duration::from_millis(500), Duration::from_secs(1))
    }

    fn span(&self) -> Duration {
        self.bench.pick(Duration::from_millis(1500), Duration::from_secs(4))
    }
}

fn loads() -> impl Iterator<Item = (usize, Settings)> {
    PROCESSES.into_iter().flat_map(|processes| Settings::BOTH.map(|settings| (processes, settings)))
}
