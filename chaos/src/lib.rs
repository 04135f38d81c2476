//! Everything is killed, stopped, cut off and restarted while it works, and a ledger shows whether
//! anything was lost.
//!
//! Starts a PostgreSQL of its own and three servers, each behind a proxy; drives producers,
//! consumers, transactions, jobs and orchestrations in processes of their own; hurts all of them by
//! a plan that a seed decides; records what each of them saw; heals everything, lets the queues run
//! empty, and checks the history. Figures that must be 0 are the checker's columns (`checker.rs`).
//! On failure everything is kept, and the report lists the records of a message for which a promise
//! was broken.

mod calls;
mod checker;
mod child;
mod clock;
mod cluster;
mod drain;
mod faults;
mod history;
mod layout;
mod node;
mod options;
mod plan;
mod processes;
mod promotion;
mod sabotage;
mod story;
mod verdict;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use reveille_testkit::scenario::{Report, program, progress};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use calls::Caller;
use checker::Verdict;
use cluster::{Cluster, SmallDisk};
use faults::World;
use history::{Count, Event, History, Phase, Place, Record};
use layout::{CHECKED, INBOX, LEASE, NOTES, ORDERS, REPLAY};
use node::Node;
use plan::Kind;
use processes::Processes;
use promotion::Replication;

pub use child::{CHILD, run as run_child};
pub use options::Options;

const NODES: usize = 3;
/// Producers wait while a group is further behind than this.
const BACKLOG_MAX: u64 = 15_000;
/// What is ready is delivered within a lease and a heartbeat; the rest is for a machine that has
/// other work.
const DRAINING: Duration = Duration::from_secs(90);

/// One run with these options, or two where a primary dies. Returns the figures.
pub async fn run(options: &Options) -> anyhow::Result<Report> {
    let seed = options.seed.unwrap_or_else(|| fastrand::u64(0..1_000_000_000));
    progress(&format!("seed {seed}: again with `chaos {}`", options.words(seed)));
    let program = program::build().await?;
    let first = options.promotes().then_some(Replication::Synchronous);
    let mut report = Run { options, seed, program: &program, replication: first }.judged().await?;
    report.command_words(&options.words(seed));
    if options.promotes() {
        let second = Some(Replication::Asynchronous);
        let (verdict, ..) = Run { options, seed, program: &program, replication: second }.go(false).await?;
        verdict::report_loss(&mut report, &verdict);
    }
    Ok(report)
}

/// One run, from an empty directory to a verdict.
#[derive(Debug, Clone, Copy)]
struct Run<'o> {
    options: &'o Options,
    seed: u64,
    program: &'o Path,
    replication: Option<Replication>,
}

impl Run<'_> {
    /// Runs, and fails the report if a promise was broken.
    async fn judged(self) -> anyhow::Result<Report> {
        let began = Instant::now();
        let (verdict, records, version) = self.go(true).await?;
        let mut report = verdict::report(&verdict, &records, version, began.elapsed());
        if !verdict.is_clean() {
            report.fail(format!("promises were broken (seed {}); see above for what and where", self.seed));
        }
        Ok(report)
    }

    /// Runs and checks. If a promise was broken and `keep` is set, prints what happened and keeps
    /// the files of the run.
    async fn go(self, keep: bool) -> anyhow::Result<(Verdict, Vec<Record>, String)> {
        let dir = cluster::directory(self.seed)?;
        let kept = || format!("everything is kept in {}", dir.display());
        let mut disk = None;
        let (records, version) = match self.live(&dir, &mut disk).await {
            Ok(lived) => lived,
            Err(error) => {
                std::mem::forget(disk);
                return Err(error.context(format!("seed {}; {}", self.seed, kept())));
            }
        };
        progress(&format!("checking {} records", records.len()));
        let verdict = checker::check(&records);
        match verdict::complaint(&verdict, &records).filter(|_| keep) {
            Some(sentence) => {
                eprintln!("{sentence}\n\n{}", kept());
                std::mem::forget(disk);
            }
            None => {
                drop(disk);
                std::fs::remove_dir_all(&dir)?;
            }
        }
        Ok((verdict, records, version))
    }

    /// The run itself: its history, and the version of PostgreSQL.
    async fn live(self, dir: &Path, disk: &mut Option<SmallDisk>) -> anyhow::Result<(Vec<Record>, String)> {
        let options = self.options;
        let kinds = self.kinds()?;
        if kinds.contains(&Kind::DiskFull) {
            *disk = Some(SmallDisk::mount(&dir.join("disk"))?);
        }
        let pg_dir = if disk.is_some() { dir.join("disk/postgres") } else { dir.join("postgres") };
        let world = self.set_up(dir, pg_dir).await?;
        let plan = plan::plan(self.seed, fault_span(options), &kinds);
        world.history.note(Event::Phase { phase: Phase::Faults });
        world.processes.start_missing().await?;
        progress(&format!("{} faults in {} s", plan.len(), fault_span(options).as_secs()));
        let (end, tasks) = (CancellationToken::new(), TaskTracker::new());
        let watched = Arc::clone(&world);
        tasks.spawn(end.clone().run_until_cancelled_owned(async move { watch_backlog(&watched).await }));
        let sought = Arc::clone(&world);
        tasks.spawn(end.clone().run_until_cancelled_owned(async move { seek_now_and_then(&sought).await }));
        let began = Instant::now();
        for how in &options.sabotage {
            sabotage::commit(&world, *how).await?;
        }
        let (inflicted, promoted) = tokio::join!(faults::inflict(&world, &plan), self.promote_half_way(&world));
        sleep(fault_span(options).saturating_sub(began.elapsed())).await;
        end.cancel();
        tasks.close();
        tasks.wait().await;
        inflicted.and(promoted)?;
        wind_down(&world, calm_span(options), dir).await?;
        let version = world.postgres.admin().await?.client.query_one("select version()", &[]).await?.get(0);
        let world = Arc::into_inner(world).context("a task still uses the world")?;
        let World { history, processes, nodes, postgres, standby, .. } = world;
        drop((processes, nodes));
        tokio::task::spawn_blocking(move || drop((postgres, standby))).await?;
        let history = Arc::into_inner(history).context("a task still writes the history")?;
        Ok((history.finish(), version))
    }

    /// Beside a promotion nothing else happens to PostgreSQL.
    fn kinds(self) -> anyhow::Result<Vec<Kind>> {
        let kinds = self.options.kinds()?;
        let beside = [Kind::KillServer, Kind::KillConsumer, Kind::KillProducer, Kind::KillWorker, Kind::Cut];
        Ok(if self.options.promotes() && kinds.is_empty() { beside.to_vec() } else { kinds })
    }

    async fn promote_half_way(self, world: &World) -> anyhow::Result<()> {
        let (Some(replication), Some(standby)) = (self.replication, &world.standby) else { return Ok(()) };
        sleep(fault_span(self.options) / 2).await;
        progress(&format!("the primary dies ({replication:?})"));
        promotion::promote(world, standby, replication).await
    }

    async fn set_up(self, dir: &Path, pg_dir: PathBuf) -> anyhow::Result<Arc<World>> {
        progress("starting PostgreSQL and the servers");
        let history = Arc::new(History::create(&dir.join("history.jsonl"))?);
        for queue in CHECKED {
            for &(group, promise) in queue.groups {
                let (queue, group) = (queue.name.to_owned(), group.to_owned());
                history.note(Event::Group { queue, group, promise, lease: LEASE });
            }
        }
        let mut postgres = tokio::task::spawn_blocking(move || Cluster::start(&pg_dir)).await??;
        let standby = match self.replication {
            Some(replication) => Some(promotion::follow(&mut postgres, &dir.join("standby"), replication).await?),
            None => None,
        };
        let effects = "create table chaos_effect (queue text not null, key bigint not null)";
        postgres.admin().await?.client.batch_execute(effects).await?;
        let mut nodes = Vec::with_capacity(NODES);
        for n in 0..NODES {
            nodes.push(Node::start(self.program, postgres.socket(), dir.join(format!("server-{n}.log"))).await?);
        }
        Caller::connect(&history, nodes[0].address).await?.configure().await?;
        let addresses = nodes.iter().map(|node| node.address).collect();
        let urls = nodes.iter().map(Node::database_url).collect();
        let roles = layout::roles(self.options.rate());
        let processes = Processes::new(roles, Arc::clone(&history), addresses, (urls, self.seed));
        let shifts_clocks = node::clocks_can_shift();
        if !shifts_clocks {
            progress("libfaketime is not here: clocks of nodes are not exercised");
        }
        let postgres_busy = Mutex::new(());
        Ok(Arc::new(World { history, postgres, standby, postgres_busy, nodes, processes, shifts_clocks }))
    }
}

fn calm_span(options: &Options) -> Duration {
    (options.span() / 6).clamp(Duration::from_secs(3), Duration::from_secs(15))
}

fn fault_span(options: &Options) -> Duration {
    options.span().saturating_sub(calm_span(options))
}

/// Holds producers back while consumers are behind, and counts stranded groups in every snapshot it
/// can get.
async fn watch_backlog(world: &World) {
    loop {
        if let Ok(admin) = world.postgres.admin().await {
            while let (Ok(behind), Ok(stranded)) =
                (drain::backlog(&admin.client).await, drain::stranded(&admin.client).await)
            {
                drain::count(&world.history, Count::Repairs, stranded);
                let command = if behind > BACKLOG_MAX { "hold" } else { "go" };
                world.processes.send(command, layout::Role::is_producer).await;
                sleep(Duration::from_millis(400)).await;
            }
        }
        sleep(Duration::from_millis(100)).await;
    }
}

/// Some seconds before the first message that the group has not settled, so that no seek can skip
/// one.
const PAST: &str = "
    select to_char((coalesce(min(segment.at), clock_timestamp()) - interval '4 s') at time zone 'utc',
                   'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')
    from reveille.consumer_group
    join reveille.cursor on cursor.grp = consumer_group.id
    join reveille.segment on segment.partition = cursor.partition and segment.last_seq > cursor.committed
    where consumer_group.name = $1";

/// Moves a group back.
async fn seek_now_and_then(world: &World) {
    loop {
        sleep(Duration::from_secs(5)).await;
        let Ok(admin) = world.postgres.admin().await else { continue };
        let Ok(row) = admin.client.query_one(PAST, &[&REPLAY.groups[0].0]).await else { continue };
        let node = &world.nodes[fastrand::usize(0..world.nodes.len())];
        if let Ok(mut caller) = Caller::connect(&world.history, node.address).await {
            let _ = caller.seek(REPLAY.name, REPLAY.groups[0].0, row.get(0)).await;
        }
    }
}

/// Heals everything, lets the queues run empty, measures wakes in the calm, ends all processes, and
/// records what is left.
async fn wind_down(world: &World, calm: Duration, dir: &Path) -> anyhow::Result<()> {
    progress("healing and draining");
    world.history.note(Event::Phase { phase: Phase::Draining });
    for node in &world.nodes {
        node.proxy.heal();
    }
    world.processes.start_missing().await?;
    world.processes.send("brisk", |_| true).await;
    world.processes.send("hold", layout::Role::is_worker).await;
    world.processes.end(layout::Role::is_producer, Duration::from_secs(30)).await;
    let began = Instant::now();
    if drain::drained(world, DRAINING).await? {
        progress(&format!("drained after {:.1} s; calm", began.elapsed().as_secs_f64()));
        world.history.note(Event::Phase { phase: Phase::Calm });
        let mut caller = Caller::connect(&world.history, world.nodes[0].address).await?;
        let places: Vec<Place> = [ORDERS, NOTES, INBOX]
            .iter()
            .flat_map(|queue| (0..queue.partitions).map(|n| Place::new(queue.name, format!("p{n}"))))
            .collect();
        caller.trickle(&places, calm).await?;
        drain::drained(world, DRAINING).await?;
    }
    world.processes.end(|_| true, Duration::from_secs(30)).await;
    world.history.note(Event::Phase { phase: Phase::Over });
    drain::record_end(world, dir).await
}
