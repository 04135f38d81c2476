//! The handle of one program on a private server.
//!
//! Owns this program's share of `users.lock`: as long as it lives, the server stays up.
//!
//! Next: [`mod@join`], then [`crate::supervisor`].

mod join;
mod watch;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::cluster_dir::{ClusterDir, Postmaster};
use crate::error::EmbeddedError;
use crate::{EmbeddedOptions, lock};
use join::{Joined, join};
use watch::{Membership, watch};

/// How often a program that waits checks again. Starting and stopping take a tenth of a second or
/// more.
const CHECK_EVERY: Duration = Duration::from_millis(5);

/// A private PostgreSQL in use by this program. Dropping it gives it up; the server stops when no
/// other program uses it.
#[derive(Debug)]
pub struct Embedded {
    dir: ClusterDir,
    server: Postmaster,
    users: Option<File>,
    membership: Arc<Membership>,
}

/// What became of the server after [`Embedded::close`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closed {
    /// It is down, its data on disk.
    Stopped,
    /// Other programs use it, or it lingers.
    StillUp,
}

/// What a data directory holds now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// No cluster, as far as this user can see.
    Absent,
    /// A cluster whose server does not run.
    Stopped,
    /// A server that takes connections.
    Running,
}

impl Embedded {
    /// Reads the data directory and changes nothing: for programs that must not make a cluster or
    /// start one.
    pub fn presence(options: &EmbeddedOptions) -> Presence {
        let Ok(dir) = ClusterDir::joined_or_left(&options.data_dir) else { return Presence::Absent };
        match (dir.ready(), dir.major()) {
            (Some(_), _) => Presence::Running,
            (None, Some(_)) => Presence::Stopped,
            (None, None) => Presence::Absent,
        }
    }

    /// Joins the server of the data directory, or brings it up. Blocks until it is ready for
    /// queries.
    pub fn start(options: &EmbeddedOptions) -> Result<Self, EmbeddedError> {
        options.checked_settings()?;
        let dir = ClusterDir::open(&options.data_dir)?;
        let Joined { users, server, supervisor } = join(&dir, options)?;
        let membership = Arc::new(Membership::of(&users, dir.users_lock())?);
        watch(supervisor, dir.clone(), options.clone(), Arc::clone(&membership));
        Ok(Self { dir, server, users: Some(users), membership })
    }

    /// The directory of the Unix socket: the `host` of a connection.
    pub fn socket_dir(&self) -> PathBuf {
        self.dir.socket_dir()
    }

    /// The port: part of the socket's name, and the TCP port if one was chosen.
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

    /// Gives the server up and, if no other program uses it, waits until it is down, for at most
    /// `patience`.
    pub fn close(mut self, patience: Duration) -> Result<Closed, EmbeddedError> {
        self.release();
        let (users, alive) = (self.dir.users_lock(), self.dir.alive_lock());
        let began = Instant::now();
        loop {
            // In this order: a supervisor that stops the server gives `users.lock` back only when
            // that is gone.
            let others = lock::is_shared(&users).map_err(EmbeddedError::file("read the lock", &users))?;
            if !lock::is_held(&alive).map_err(EmbeddedError::file("read the lock", &alive))? {
                return Ok(Closed::Stopped);
            }
            if others || began.elapsed() >= patience {
                return Ok(Closed::StillUp);
            }
            std::thread::sleep(CHECK_EVERY);
        }
    }

    fn release(&mut self) {
        self.membership.give_up();
        if let Some(users) = self.users.take() {
            lock::release(&users);
        }
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.release();
    }
}
