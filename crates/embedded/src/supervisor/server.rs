//! One running server, started here or found running.
//!
//! `alive.lock` is the standard input of the postmaster and, by inheritance, of every backend. A
//! lock on it can be had again only when all of them are gone. The kernel guarantees that, whatever
//! a stale pid file, a zombie or a reused process id seems to say.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::guard::Turn;
use super::{Duty, logs, note};
use crate::cluster_dir::ClusterDir;
use crate::error::EmbeddedError;
use crate::identity::RunAs;
use crate::{lock, settings};

/// How long processes of an earlier server may take to end.
const LEFTOVERS_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a fast shutdown may take (it writes a checkpoint) before the server gets the signal to
/// drop everything; it then recovers from its log at the next start.
const FAST_SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(120);

#[derive(Debug)]
pub(super) struct Server {
    pid: Pid,
    origin: Origin,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// A child: its process id is its own until we have waited for it.
    Started,
    /// The child of a supervisor that was killed: its process id is its own for as long as it
    /// answers.
    Adopted,
}

impl Server {
    /// Starts the server as a child of this process.
    pub(super) fn start(dir: &ClusterDir, duty: &Duty, sender: &SyncSender<Turn>) -> Result<Self, EmbeddedError> {
        let alive = when_all_are_gone(dir)?;
        remove_stale_files(dir)?;
        let log = logs::append(&dir.postgres_log())?;
        let out = log.try_clone().map_err(EmbeddedError::file("open", &dir.postgres_log()))?;
        let program = duty.binaries.join("postgres");
        let mut command = quiet_command(&program, duty.run_as);
        command.arg("-D").arg(dir.pgdata()).arg("-k").arg(dir.socket_dir()).process_group(0);
        for argument in settings::arguments(duty.durability, duty.tcp_port, &duty.settings) {
            command.arg("-c").arg(argument);
        }
        command.stdin(alive).stdout(out).stderr(log);
        let mut child = command.spawn().map_err(EmbeddedError::program(&program))?;
        // The command keeps a copy of `alive`; while we hold it, the lock could never be had again.
        drop(command);
        let pid = Pid::from_raw(child.id().cast_signed());
        when_gone(sender, move || child.wait().map(drop))?;
        Ok(Self { pid, origin: Origin::Started })
    }

    /// Takes over a server whose supervisor was killed, if there is one.
    pub(super) fn adopt(dir: &ClusterDir, sender: &SyncSender<Turn>) -> Result<Option<Self>, EmbeddedError> {
        let path = dir.alive_lock();
        let deadline = Instant::now() + LEFTOVERS_TIMEOUT;
        while lock::is_held(&path).map_err(EmbeddedError::file("open", &path))? {
            if let Some(postmaster) = dir.listening() {
                when_gone(sender, move || lock::exclusive(&lock::open(&path)?))?;
                return Ok(Some(Self { pid: Pid::from_raw(postmaster.pid), origin: Origin::Adopted }));
            }
            // Starting, stopping, or backends that have not yet noticed the death of their
            // postmaster.
            pause_until(deadline, dir)?;
        }
        Ok(None)
    }

    /// Stops the server and waits for its end.
    pub(super) fn stop(self, dir: &ClusterDir, turns: &Receiver<Turn>) -> Result<(), EmbeddedError> {
        for (signal, patience) in [(Signal::SIGINT, FAST_SHUTDOWN_TIMEOUT), (Signal::SIGQUIT, LEFTOVERS_TIMEOUT)] {
            self.signal(dir, signal);
            if turns.recv_timeout(patience).is_ok() {
                return Ok(());
            }
        }
        Err(leftovers(dir, FAST_SHUTDOWN_TIMEOUT + LEFTOVERS_TIMEOUT))
    }

    fn signal(&self, dir: &ClusterDir, signal: Signal) {
        let answers = || dir.listening().is_some_and(|postmaster| postmaster.pid == self.pid.as_raw());
        if self.origin == Origin::Started || answers() {
            // An error means that it is gone already, which the next turn shows too.
            let _ = kill(self.pid, signal);
        }
    }
}

/// A program of PostgreSQL as the right user, with an environment that cannot change what it does.
pub(super) fn quiet_command(program: &Path, run_as: Option<RunAs>) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", "/usr/bin:/bin").env("LC_ALL", "C").env("TZ", "UTC");
    command.current_dir("/").stdin(Stdio::null());
    if let Some(run_as) = run_as {
        command.uid(run_as.uid).gid(run_as.gid);
    }
    command
}

/// The lock that proves that no process of the cluster lives. The file may have been deleted under
/// a live server, so no server may answer either.
pub(super) fn when_all_are_gone(dir: &ClusterDir) -> Result<File, EmbeddedError> {
    let path = dir.alive_lock();
    let alive = lock::open(&path).map_err(EmbeddedError::file("open", &path))?;
    let deadline = Instant::now() + LEFTOVERS_TIMEOUT;
    while !lock::try_exclusive(&alive).map_err(EmbeddedError::file("lock", &path))? || dir.listening().is_some() {
        pause_until(deadline, dir)?;
    }
    Ok(alive)
}

/// Must be called with that lock held: then no process id in these files is of this cluster.
fn remove_stale_files(dir: &ClusterDir) -> Result<(), EmbeddedError> {
    let pid_file = dir.pgdata().join("postmaster.pid");
    let sockets = fs::read_dir(dir.socket_dir()).into_iter().flatten().flatten().map(|entry| entry.path());
    for path in sockets.chain([pid_file]) {
        match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(EmbeddedError::file("remove", &path)(error));
            }
            _ => {}
        }
    }
    Ok(())
}

fn when_gone(
    sender: &SyncSender<Turn>,
    wait: impl FnOnce() -> std::io::Result<()> + Send + 'static,
) -> Result<(), EmbeddedError> {
    let sender = sender.clone();
    let body = move || {
        if let Err(error) = wait() {
            note(&format!("cannot wait for the server: {error}"));
        }
        let _ = sender.send(Turn::ServerGone);
    };
    let spawned = thread::Builder::new().name("server".to_owned()).spawn(body);
    spawned.map_err(EmbeddedError::program(Path::new("a thread"))).map(drop)
}

fn pause_until(deadline: Instant, dir: &ClusterDir) -> Result<(), EmbeddedError> {
    if Instant::now() >= deadline {
        return Err(leftovers(dir, LEFTOVERS_TIMEOUT));
    }
    thread::sleep(Duration::from_millis(10));
    Ok(())
}

fn leftovers(dir: &ClusterDir, waited: Duration) -> EmbeddedError {
    EmbeddedError::Leftovers { dir: dir.base().to_owned(), alive_lock: dir.alive_lock(), waited }
}
