//! The handle of one program on a private server.
//!
//! Owns this program's share of `users.lock`: as long as it lives, the server stays up. Promises that a supervisor is in
//! charge, also when that one is killed: a thread waits for its end and puts another in its place.
//!
//! Next: [`crate::supervisor`].

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::binaries::Binaries;
use crate::cluster_dir::{ClusterDir, Postmaster};
use crate::error::EmbeddedError;
use crate::supervisor::Supervisor;
use crate::{EmbeddedOptions, Progress, identity, lock};

/// How often a starting program looks whether the server is ready. Starting takes a tenth of a second or more.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A private PostgreSQL in use by this program. Dropping it gives it up; the server stops when nobody else uses it.
#[derive(Debug)]
pub struct Embedded {
    dir: ClusterDir,
    server: Postmaster,
    users: Option<File>,
    released: Arc<AtomicBool>,
}

/// What became of the server after [`Embedded::close`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closed {
    /// It is down, its data on disk.
    Stopped,
    /// Other programs use it, or it lingers.
    StillUp,
}

impl Embedded {
    /// Joins the server of the data directory, or brings it up. Blocks until it is ready for queries.
    pub fn start(options: &EmbeddedOptions) -> Result<Self, EmbeddedError> {
        options.checked_settings()?;
        let dir = ClusterDir::open(&options.data_dir)?;
        let deadline = Instant::now() + options.start_timeout;
        let users = join_users(&dir, options, deadline)?;
        let (server, supervisor) = bring_up(&dir, options, deadline)?;
        let released = Arc::new(AtomicBool::new(false));
        watch(supervisor, dir.clone(), options.clone(), Arc::clone(&released));
        Ok(Self { dir, server, users: Some(users), released })
    }

    /// The directory of the Unix socket: the `host` of a connection.
    pub fn socket_dir(&self) -> PathBuf {
        self.dir.socket_dir()
    }

    /// The port: part of the socket's name, and the TCP port if one was asked for.
    pub fn port(&self) -> u16 {
        self.server.port
    }

    /// The process id the server had when this program joined it.
    pub fn pid(&self) -> u32 {
        self.server.pid.unsigned_abs()
    }

    /// The major version of the cluster.
    pub fn major(&self) -> Option<u32> {
        self.dir.major()
    }

    /// The data directory, as an absolute path.
    pub fn data_dir(&self) -> &Path {
        self.dir.base()
    }

    /// The server's log.
    pub fn log(&self) -> PathBuf {
        self.dir.postgres_log()
    }

    /// A connection string (`key=value`) for `database` over the socket, as the superuser.
    pub fn connection_string(&self, database: &str) -> String {
        let quoted = |value: &str| format!("'{}'", value.replace('\\', "\\\\").replace('\'', "\\'"));
        let host = quoted(&self.socket_dir().to_string_lossy());
        format!("host={host} port={} user=postgres dbname={}", self.port(), quoted(database))
    }

    /// Gives the server up and, if nobody else uses it, waits until it is down, for at most `patience`.
    pub fn close(mut self, patience: Duration) -> Result<Closed, EmbeddedError> {
        self.release();
        let (users, alive) = (self.dir.users_lock(), self.dir.alive_lock());
        let deadline = Instant::now() + patience;
        while lock::is_held(&alive).map_err(EmbeddedError::file("read the lock", &alive))? {
            let others = lock::is_shared(&users).map_err(EmbeddedError::file("read the lock", &users))?;
            if others || Instant::now() >= deadline {
                return Ok(Closed::StillUp);
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(Closed::Stopped)
    }

    fn release(&mut self) {
        self.released.store(true, Ordering::Release);
        self.users = None;
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.release();
    }
}

/// Takes this program's share of the lock. A supervisor that is stopping the server holds it alone, so that a newcomer
/// waits for the end and then starts afresh.
fn join_users(dir: &ClusterDir, options: &EmbeddedOptions, deadline: Instant) -> Result<File, EmbeddedError> {
    let path = dir.users_lock();
    let users = lock::open(&path).map_err(EmbeddedError::file("open", &path))?;
    while !lock::try_shared(&users).map_err(EmbeddedError::file("lock", &path))? {
        wait_until(deadline, dir, options)?;
    }
    Ok(users)
}

/// Until a server is ready *and* supervised: starts a supervisor when there is none, and passes on what it says.
fn bring_up(
    dir: &ClusterDir,
    options: &EmbeddedOptions,
    deadline: Instant,
) -> Result<(Postmaster, Option<Supervisor>), EmbeddedError> {
    let lock_path = dir.supervisor_lock();
    let is_supervised = || lock::is_held(&lock_path).map_err(EmbeddedError::file("open", &lock_path));
    let mut ours: Option<Supervisor> = None;
    loop {
        // In this order: a supervisor never gives up its lock while we hold our share of `users.lock`.
        if let Some(server) = dir.ready()
            && is_supervised()?
        {
            return Ok((server, ours));
        }
        // A failure of the supervisor is ours; one that found another in charge just leaves.
        if let Some(supervisor) = &mut ours
            && supervisor.has_left()?
        {
            ours = None;
        }
        if ours.is_none() && !is_supervised()? {
            ours = Some(start_supervisor(dir, options)?);
        }
        wait_until(deadline, dir, options)?;
    }
}

fn start_supervisor(dir: &ClusterDir, options: &EmbeddedOptions) -> Result<Supervisor, EmbeddedError> {
    let pgdata = dir.pgdata();
    let wanted = dir.major();
    let binaries = Binaries::locate(options, wanted.or(options.major))?;
    if let Some(have) = wanted.filter(|have| *have != binaries.major) {
        return Err(EmbeddedError::WrongMajor { pgdata, have, found: binaries.version });
    }
    let run_as = identity::choose(options, &pgdata, &[&pgdata, &binaries.dir.join("postgres")])?;
    let version = binaries.version.clone();
    (options.progress)(&Progress::Starting { version, data_dir: dir.base().to_owned() });
    Supervisor::spawn(dir, options, &binaries, run_as)
}

fn wait_until(deadline: Instant, dir: &ClusterDir, options: &EmbeddedOptions) -> Result<(), EmbeddedError> {
    if Instant::now() >= deadline {
        return Err(EmbeddedError::NotReady {
            dir: dir.base().to_owned(),
            log: dir.postgres_log(),
            waited: options.start_timeout,
        });
    }
    std::thread::sleep(LOOK_EVERY);
    Ok(())
}

/// Without this, a server whose supervisor was killed would outlive its last user.
fn watch(supervisor: Option<Supervisor>, dir: ClusterDir, options: EmbeddedOptions, released: Arc<AtomicBool>) {
    let body = move || {
        let mut current = supervisor;
        loop {
            match current.take() {
                Some(ours) => ours.wait(),
                None if wait_for_end_of_another(&dir).is_err() => return,
                None => {}
            }
            if released.load(Ordering::Acquire) {
                return;
            }
            let deadline = Instant::now() + options.start_timeout;
            match bring_up(&dir, &options, deadline) {
                Ok((_, ours)) => current = ours,
                // Nothing more can be done here: the next program to start on this directory says why.
                Err(_) => return,
            }
        }
    };
    // A thread that cannot be had costs the replacement of a killed supervisor, not the server.
    let _ = std::thread::Builder::new().name("reveille-embedded".to_owned()).spawn(body);
}

fn wait_for_end_of_another(dir: &ClusterDir) -> std::io::Result<()> {
    lock::open(&dir.supervisor_lock())?.lock_shared()
}
