//! Carries out the plan of faults.

use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::Signal;
use reveille_testkit::Direction;
use reveille_testkit::scenario::progress;
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use super::cluster::Cluster;
use super::history::{Edge, Event, History};
use super::layout::Role;
use super::node::{self, Node};
use super::plan::{Kind, Planned};
use super::processes::{Participant, Processes};

/// Everything that can be hurt.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) history: Arc<History>,
    pub(crate) postgres: Cluster,
    /// The standby that follows it, in a run with a promotion.
    pub(crate) standby: Option<Cluster>,
    /// Held while PostgreSQL as a whole is away.
    pub(crate) postgres_busy: Mutex<()>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) processes: Processes,
    /// Whether servers may get a wrong clock.
    pub(crate) shifts_clocks: bool,
}

/// Runs the plan to its end, and waits until the last fault is over.
pub(crate) async fn inflict(world: &Arc<World>, plan: &[Planned]) -> anyhow::Result<()> {
    let began = Instant::now();
    let mut running = JoinSet::new();
    for (n, planned) in plan.iter().copied().enumerate() {
        sleep_until(began + planned.at).await;
        if n % 100 == 99 {
            progress(&format!("{} of {} faults, {} s", n + 1, plan.len(), began.elapsed().as_secs()));
        }
        let world = Arc::clone(world);
        running.spawn(async move { world.hurt(planned).await });
        while let Some(ended) = running.try_join_next() {
            ended??;
        }
    }
    while let Some(ended) = running.join_next().await {
        ended??;
    }
    Ok(())
}

impl World {
    async fn hurt(&self, planned: Planned) -> anyhow::Result<()> {
        let Planned { kind, pick, lasts, .. } = planned;
        match kind {
            Kind::KillServer => self.kill_server(pick, lasts).await,
            Kind::KillConsumer => self.kill_process(kind, pick, lasts, is_consumer).await,
            Kind::KillProducer => self.kill_process(kind, pick, lasts, Role::is_producer).await,
            Kind::KillWorker => self.kill_process(kind, pick, lasts, Role::is_worker).await,
            Kind::KillPostmaster | Kind::Restart | Kind::KillSupervisor => self.hurt_postgres(kind).await,
            Kind::DiskFull => self.fill_disk(lasts).await,
            Kind::StopServer => self.stop_server(pick, lasts).await,
            Kind::StopConsumer => self.stop_consumer(pick, lasts).await,
            Kind::KillListener => self.with_admin(kind, lasts, KILL_LISTENER).await,
            Kind::HoldXmin => self.with_admin(kind, lasts, HOLD_XMIN).await,
            Kind::Flood => self.with_admin(kind, lasts, FLOOD).await,
            Kind::Cut | Kind::Stall | Kind::HalfOpen | Kind::CutCommit => self.hurt_wire(kind, pick, lasts).await,
        }
    }

    fn begins(&self, kind: Kind, target: &str) -> Active<'_> {
        let (name, target) = (kind.name().to_owned(), target.to_owned());
        self.history.note(Event::Fault { kind: name.clone(), target: target.clone(), edge: Edge::Begin });
        Active { history: &self.history, kind: name, target }
    }

    async fn kill_server(&self, pick: usize, lasts: Duration) -> anyhow::Result<()> {
        let n = pick % self.nodes.len();
        let node = &self.nodes[n];
        let Ok(mut life) = node.life.try_lock() else { return Ok(()) };
        let Some(mut child) = life.take() else { return Ok(()) };
        // A server that had ended by itself would be a defect, not a kill.
        anyhow::ensure!(child.try_wait()?.is_none(), "server {n} ended by itself; see its log");
        let _active = self.begins(Kind::KillServer, &format!("server {n}"));
        child.kill().await?;
        sleep(lasts).await;
        let offsets = [-7200, -90, 90, 7200];
        let clock_offset_s = (self.shifts_clocks && pick.is_multiple_of(5)).then(|| offsets[pick / 5 % offsets.len()]);
        if let Some(offset) = clock_offset_s {
            let (kind, target) = ("clock".to_owned(), format!("server {n} is wrong by {offset} s from here on"));
            self.history.note(Event::Fault { kind, target, edge: Edge::Begin });
        }
        *life = Some(node.spawn(clock_offset_s).await?);
        Ok(())
    }

    async fn stop_server(&self, pick: usize, lasts: Duration) -> anyhow::Result<()> {
        let n = pick % self.nodes.len();
        let Ok(life) = self.nodes[n].life.try_lock() else { return Ok(()) };
        let Some(child) = life.as_ref() else { return Ok(()) };
        let _active = self.begins(Kind::StopServer, &format!("server {n}"));
        node::signal(child, Signal::SIGSTOP)?;
        sleep(lasts).await;
        node::signal(child, Signal::SIGCONT)
    }

    fn participant(&self, pick: usize, which: fn(&Role) -> bool) -> Option<&Participant> {
        let all = self.processes.participants.iter();
        let those: Vec<&Participant> = all.filter(|participant| which(&participant.role)).collect();
        (!those.is_empty()).then(|| those[pick % those.len()])
    }

    async fn kill_process(
        &self,
        kind: Kind,
        pick: usize,
        lasts: Duration,
        which: fn(&Role) -> bool,
    ) -> anyhow::Result<()> {
        let Some(participant) = self.participant(pick, which) else { return Ok(()) };
        let Ok(mut place) = participant.process.try_lock() else { return Ok(()) };
        let Some(mut process) = place.take() else { return Ok(()) };
        let title = participant.role.title();
        anyhow::ensure!(process.child.try_wait()?.is_none(), "the {title} ended by itself");
        let _active = self.begins(kind, &title);
        process.kill().await;
        sleep(lasts).await;
        *place = Some(self.processes.start(&participant.role)?);
        Ok(())
    }

    async fn stop_consumer(&self, pick: usize, lasts: Duration) -> anyhow::Result<()> {
        let Some(participant) = self.participant(pick, is_consumer) else { return Ok(()) };
        let Ok(place) = participant.process.try_lock() else { return Ok(()) };
        let Some(process) = place.as_ref() else { return Ok(()) };
        let _active = self.begins(Kind::StopConsumer, &participant.role.title());
        node::signal(&process.child, Signal::SIGSTOP)?;
        sleep(lasts).await;
        node::signal(&process.child, Signal::SIGCONT)
    }

    async fn hurt_postgres(&self, kind: Kind) -> anyhow::Result<()> {
        let Ok(_alone) = self.postgres_busy.try_lock() else { return Ok(()) };
        let _active = self.begins(kind, "PostgreSQL");
        match kind {
            Kind::KillPostmaster => self.postgres.end_postmaster(Signal::SIGKILL).await,
            Kind::KillSupervisor => self.postgres.kill_supervisor().await,
            _ => self.postgres.end_postmaster(Signal::SIGINT).await,
        }
    }

    async fn fill_disk(&self, lasts: Duration) -> anyhow::Result<()> {
        let Ok(_alone) = self.postgres_busy.try_lock() else { return Ok(()) };
        {
            let _active = self.begins(Kind::DiskFull, "PostgreSQL");
            self.postgres.fill_disk(lasts).await?;
        }
        // Some work between two of them.
        sleep(Duration::from_secs(5)).await;
        Ok(())
    }

    /// A fault in SQL. PostgreSQL may be away, or go away meanwhile; then the fault does not
    /// happen.
    async fn with_admin(&self, kind: Kind, lasts: Duration, sql: &str) -> anyhow::Result<()> {
        if self.postgres_busy.try_lock().is_err() {
            return Ok(());
        }
        let Ok(admin) = self.postgres.admin().await else { return Ok(()) };
        let _active = self.begins(kind, "PostgreSQL");
        let end = Instant::now() + lasts;
        while admin.client.batch_execute(sql).await.is_ok() && Instant::now() < end {
            let pause = if kind == Kind::HoldXmin { lasts } else { Duration::from_millis(20) };
            sleep(pause).await;
        }
        Ok(())
    }

    async fn hurt_wire(&self, kind: Kind, pick: usize, lasts: Duration) -> anyhow::Result<()> {
        let n = pick % self.nodes.len();
        let proxy = &self.nodes[n].proxy;
        let _active = self.begins(kind, &format!("server {n} and PostgreSQL"));
        match kind {
            Kind::Stall => {
                proxy.stall();
                sleep(lasts).await;
            }
            Kind::HalfOpen => {
                proxy.half_open();
                sleep(lasts).await;
                // The swallowed bytes are missing in the middle of each stream: no such connection
                // may go on.
                proxy.cut();
            }
            // The answer to a statement that was its own transaction, or to COMMIT, is cut off at
            // its first bytes.
            Kind::CutCommit if pick.is_multiple_of(2) => {
                proxy.cut_after(Direction::ToClient, pick % 64);
                sleep(Duration::from_millis(300)).await;
            }
            Kind::CutCommit => {
                proxy.cut_after_sending("COMMIT");
                sleep(Duration::from_secs(1)).await;
            }
            _ => proxy.cut(),
        }
        proxy.heal();
        Ok(())
    }
}

fn is_consumer(role: &Role) -> bool {
    matches!(role, Role::Consumer { .. } | Role::Forwarder)
}

/// A fault that is recorded as over when this is dropped.
struct Active<'w> {
    history: &'w History,
    kind: String,
    target: String,
}

impl Drop for Active<'_> {
    fn drop(&mut self) {
        let (kind, target) = (std::mem::take(&mut self.kind), std::mem::take(&mut self.target));
        self.history.note(Event::Fault { kind, target, edge: Edge::End });
    }
}

/// One of the connections that listen, of any process.
const KILL_LISTENER: &str = "select pg_terminate_backend(pid) from pg_stat_activity \
                             where application_name like '%listen' order by random() limit 1";
/// A transaction that reads, and stays open.
const HOLD_XMIN: &str = "begin isolation level repeatable read; select count(*) from reveille.queue";
/// Hints that no node sent: about nothing, about everything, about a queue that is there.
const FLOOD: &str = "select pg_notify(reveille.hint_channel(), words) from generate_series(1, 200) as n, \
                     lateral (select case n % 3 when 0 then 'noise ' || n when 1 then E'hint\\nmessages ' || n % 9 \
                     else E'hint\\nmessages' end as words) as made";
