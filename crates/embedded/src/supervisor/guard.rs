//! The life of a supervisor: take charge, bring the server up, keep it up while it has users, stop
//! it, leave.
//!
//! Promises that there is one supervisor per directory, that a server that dies under its users
//! comes back, and that pid and socket files are removed only when the kernel says that no process
//! of the cluster lives.

use std::fs::{self, File};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use nix::sys::statvfs::statvfs;

use super::server::Server;
use super::{Duty, initdb, logs, note};
use crate::cluster_dir::{ClusterDir, make_private};
use crate::error::EmbeddedError;
use crate::lock::{self, FileId};

/// What can happen to a supervisor.
#[derive(Debug)]
pub(super) enum Turn {
    /// The server had no users for the whole linger. The lock keeps newcomers waiting until we have
    /// left.
    Unused(File),
    /// The server's process has ended.
    ServerGone,
}

/// A watcher holds `super.lock` for an instant when it finds its supervisor dead; wait that out.
const TAKE_CHARGE_FOR: Duration = Duration::from_millis(500);
const QUICK_FAILURES_MAX: u32 = 5;
/// A server that ran this long did not fail to start.
const RAN_WELL: Duration = Duration::from_secs(10);
/// How often the length of the logs is checked.
const LOGS_EVERY: Duration = Duration::from_secs(60);
/// Most file systems have blocks of 4 kB: half a megabyte.
const BLOCKS_MIN: nix::libc::fsblkcnt_t = 128;
const LINGER_STEP: Duration = Duration::from_millis(50);

/// Runs until the server has no more users, or cannot be run.
pub(crate) fn guard(duty: &Duty) -> Result<(), EmbeddedError> {
    let dir = ClusterDir::joined(&duty.data_dir)?;
    let Some(in_charge) = take_charge(&dir)? else {
        return Ok(());
    };
    make_private(&dir.socket_dir(), duty.run_as)?;
    let (sender, turns) = sync_channel(2);
    watch_users(&dir, duty.linger, sender.clone())?;
    let server = match Server::adopt(&dir, &sender)? {
        Some(adopted) => adopted,
        None => {
            initdb::make_cluster(&dir, duty)?;
            Server::start(&dir, duty, &sender)?
        }
    };
    keep_up(server, &Post { dir, duty, in_charge }, &sender, &turns)
}

/// A supervisor's charge of a directory. Dropping it lets another supervisor take charge.
struct Post<'a> {
    dir: ClusterDir,
    duty: &'a Duty,
    in_charge: File,
}

impl Post<'_> {
    /// Whether the directory at this path is still the one whose lock we hold.
    fn is_held(&self) -> bool {
        let there = FileId::at(&self.dir.supervisor_lock());
        there.is_ok_and(|there| FileId::of(&self.in_charge).is_ok_and(|ours| ours == there))
    }
}

fn keep_up(
    mut server: Server,
    post: &Post<'_>,
    sender: &SyncSender<Turn>,
    turns: &Receiver<Turn>,
) -> Result<(), EmbeddedError> {
    let dir = &post.dir;
    let mut quick_failures = 0;
    let mut started = Instant::now();
    while let Some(turn) = next_turn(dir, turns) {
        match turn {
            Turn::Unused(_until_we_left) => return server.stop(dir, turns),
            Turn::ServerGone if !post.is_held() => {
                return Err(EmbeddedError::Vanished { dir: dir.base().to_owned() });
            }
            Turn::ServerGone => {
                quick_failures = if started.elapsed() > RAN_WELL { 1 } else { quick_failures + 1 };
                if quick_failures >= QUICK_FAILURES_MAX {
                    return Err(keeps_exiting(dir, quick_failures));
                }
                note(&format!("the server has ended under its users; starting it again ({quick_failures})"));
                std::thread::sleep(Duration::from_millis(100) * (quick_failures - 1));
                server = Server::start(dir, post.duty, sender)?;
                started = Instant::now();
            }
        }
    }
    Ok(())
}

/// Waits for what happens next, and keeps the logs short meanwhile.
fn next_turn(dir: &ClusterDir, turns: &Receiver<Turn>) -> Option<Turn> {
    loop {
        match turns.recv_timeout(LOGS_EVERY) {
            Ok(turn) => return Some(turn),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {
                logs::bound(&dir.postgres_log());
                logs::bound(&dir.supervisor_log());
            }
        }
    }
}

fn take_charge(dir: &ClusterDir) -> Result<Option<File>, EmbeddedError> {
    let path = dir.supervisor_lock();
    let file = lock::open(&path).map_err(EmbeddedError::file("open", &path))?;
    let deadline = Instant::now() + TAKE_CHARGE_FOR;
    loop {
        if lock::try_exclusive(&file).map_err(EmbeddedError::file("lock", &path))? {
            return Ok(Some(file));
        }
        if Instant::now() >= deadline {
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Waits in the kernel for the last user to go, then for the linger.
fn watch_users(dir: &ClusterDir, linger: Duration, sender: SyncSender<Turn>) -> Result<(), EmbeddedError> {
    let path = dir.users_lock();
    let users = lock::open(&path).map_err(EmbeddedError::file("open", &path))?;
    let body = move || {
        if let Err(error) = wait_unused(&users, linger) {
            // Better to stop a server in use than to leave one for ever: its users' watchers bring
            // it back.
            note(&format!("cannot watch users.lock: {error}"));
        }
        let _ = sender.send(Turn::Unused(users));
    };
    std::thread::Builder::new().name("users".to_owned()).spawn(body).map_err(EmbeddedError::file("watch", &path))?;
    Ok(())
}

/// Returns with the lock held alone.
fn wait_unused(users: &File, linger: Duration) -> std::io::Result<()> {
    'used: loop {
        lock::exclusive(users)?;
        let unused_since = Instant::now();
        while unused_since.elapsed() < linger {
            users.unlock()?;
            std::thread::sleep(LINGER_STEP);
            if !lock::try_exclusive(users)? {
                continue 'used;
            }
        }
        return Ok(());
    }
}

/// Whether fewer blocks are free than a server needs to begin.
fn has_no_room(dir: &ClusterDir) -> bool {
    statvfs(dir.base()).is_ok_and(|room| room.blocks_available() < BLOCKS_MIN)
}

fn keeps_exiting(dir: &ClusterDir, times: u32) -> EmbeddedError {
    let log = dir.postgres_log();
    let text = fs::read(&log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let recent: Vec<&str> = text.lines().rev().take(20).filter(|line| !line.trim().is_empty()).collect();
    // On a full disk the server cannot even log that.
    if recent.iter().any(|line| line.contains("No space left on device")) || has_no_room(dir) {
        return EmbeddedError::DiskFull { dir: dir.base().to_owned() };
    }
    let grave = |line: &&&str| line.contains("FATAL:") || line.contains("PANIC:");
    let said = recent.iter().find(grave).or(recent.first()).unwrap_or(&"it is empty").to_string();
    EmbeddedError::KeepsExiting { times, log, said }
}
