//! The primary dies and its standby takes over, once with synchronous replication and once without.
//!
//! With it, nothing that was answered may be missing. Without it, what the standby had not received
//! is gone: the database promises no more, so this loss is a figure of its own and does not count
//! against the queue.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use reveille_testkit::scenario::{Plain, progress};
use tokio::time::{Instant, sleep};

use super::cluster::Cluster;
use super::faults::World;
use super::history::{Edge, Event};

/// Whether a commit waits for the standby.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Replication {
    Synchronous,
    Asynchronous,
}

/// The kind of this fault in the history.
pub(crate) const PROMOTION: &str = "promotion";
const PATIENCE: Duration = Duration::from_secs(60);

/// Makes a standby in `dir` that follows a running primary.
pub(crate) async fn follow(primary: &mut Cluster, dir: &Path, replication: Replication) -> anyhow::Result<Cluster> {
    progress("making a standby");
    let (from, to) = (primary.dir().to_owned(), dir.to_owned());
    let conninfo = format!("host='{}' port=5432 user=postgres", primary.socket_dir().display());
    primary.close();
    tokio::task::spawn_blocking(move || copy(&from, &to, &conninfo)).await??;
    primary.open()?;
    let standby = Cluster::start(dir)?;
    let admin = primary.admin().await?;
    until(&admin, "select exists (select from pg_stat_replication where state = 'streaming')").await?;
    if replication == Replication::Synchronous {
        admin.client.batch_execute("alter system set synchronous_standby_names = '*'").await?;
        admin.client.batch_execute("select pg_reload_conf()").await?;
        until(&admin, "select exists (select from pg_stat_replication where sync_state = 'sync')").await?;
    }
    Ok(standby)
}

fn copy(from: &Path, to: &Path, conninfo: &str) -> anyhow::Result<()> {
    fs::create_dir(to)?;
    // Marks a directory as ours.
    fs::write(to.join("users.lock"), "")?;
    let copied = Command::new("cp").arg("-a").arg(from.join("pg")).arg(to).status()?;
    anyhow::ensure!(copied.success(), "the data directory could not be copied");
    let (pg, quoted) = (to.join("pg"), conninfo.replace('\'', "''"));
    let setting = format!("primary_conninfo = '{quoted}'\n");
    let auto = pg.join("postgresql.auto.conf");
    let known = fs::read_to_string(&auto).unwrap_or_default();
    fs::write(&auto, format!("{known}{setting}"))?;
    fs::write(pg.join("standby.signal"), "")?;
    // The owner of the data must own these files, too.
    for file in [pg.join("standby.signal"), auto] {
        let owned = Command::new("chown").arg("--reference").arg(&pg).arg(&file).status()?;
        anyhow::ensure!(owned.success(), "{} could not be given away", file.display());
    }
    Ok(())
}

/// Kills the primary for good, promotes the standby, and leads all new connections to it.
pub(crate) async fn promote(world: &World, standby: &Cluster, replication: Replication) -> anyhow::Result<()> {
    let note = |edge| {
        let target = format!("PostgreSQL ({replication:?})");
        world.history.note(Event::Fault { kind: PROMOTION.to_owned(), target, edge });
    };
    let there = Plain::connect(&standby.own_url()).await?;
    let receiver = if replication == Replication::Asynchronous { Some(pause_receiver(&there).await?) } else { None };
    // Meanwhile the primary goes on. An asynchronous standby receives nothing of that.
    sleep(Duration::from_millis(700)).await;
    note(Edge::Begin);
    world.postgres.kill_for_good()?;
    if let Some(receiver) = receiver {
        kill(receiver, Signal::SIGKILL)?;
    }
    let there = if there.client.is_closed() { standby.admin_of_own().await? } else { there };
    promoted(standby, there).await?;
    world.postgres.redirect_to(standby)?;
    note(Edge::End);
    Ok(())
}

/// Asks again on a new session when a receiver that was killed makes the standby end the old one.
async fn promoted(standby: &Cluster, mut there: Plain) -> anyhow::Result<()> {
    let end = Instant::now() + PATIENCE;
    loop {
        let answer = there.client.query_one("select pg_promote(), pg_is_in_recovery()", &[]).await;
        if answer.is_ok_and(|row| !row.get::<_, bool>(1)) {
            return Ok(());
        }
        anyhow::ensure!(Instant::now() < end, "the standby was not promoted");
        sleep(Duration::from_millis(50)).await;
        if there.client.is_closed() {
            there = standby.admin_of_own().await?;
        }
    }
}

async fn pause_receiver(there: &Plain) -> anyhow::Result<Pid> {
    let receiver = "select pid from pg_stat_activity where backend_type = 'walreceiver'";
    let pid = Pid::from_raw(there.client.query_one(receiver, &[]).await?.get(0));
    kill(pid, Signal::SIGSTOP)?;
    Ok(pid)
}

async fn until(admin: &Plain, question: &str) -> anyhow::Result<()> {
    let end = Instant::now() + PATIENCE;
    while !admin.client.query_one(question, &[]).await?.get::<_, bool>(0) {
        anyhow::ensure!(Instant::now() < end, "in vain: {question}");
        sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}
