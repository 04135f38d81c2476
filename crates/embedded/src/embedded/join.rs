//! How a program becomes a user of the server: a share of the lock first, then a server, then a
//! supervisor for it.

use std::fs::File;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use super::CHECK_EVERY;
use crate::binaries::Binaries;
use crate::cluster_dir::{ClusterDir, Postmaster};
use crate::error::EmbeddedError;
use crate::lock::FileId;
use crate::supervisor::{End, Supervisor};
use crate::{EmbeddedOptions, Progress, identity, lock};

/// A supervisor that ends like this more often is not being killed but broken.
const KILLED_MAX: u32 = 3;

/// A ready server that cannot be stopped as long as `users` is open.
#[derive(Debug)]
pub(super) struct Joined {
    pub(super) users: File,
    pub(super) server: Postmaster,
    /// The supervisor, if it is a child of this program.
    pub(super) supervisor: Option<Supervisor>,
}

pub(super) fn join(dir: &ClusterDir, options: &EmbeddedOptions) -> Result<Joined, EmbeddedError> {
    let mut patience = Patience::new(dir, options);
    let users = take_share(dir, &patience)?;
    let (server, supervisor) = bring_up(dir, options, &mut patience)?;
    Ok(Joined { users, server, supervisor })
}

/// Takes this program's share of the lock. A supervisor that is stopping the server holds it alone,
/// so that a newcomer waits for the end and then starts the server again.
fn take_share(dir: &ClusterDir, patience: &Patience) -> Result<File, EmbeddedError> {
    let path = dir.users_lock();
    loop {
        let users = lock::open(&path).map_err(EmbeddedError::file("open", &path))?;
        while !lock::try_shared(&users).map_err(EmbeddedError::file("lock", &path))? {
            patience.pause()?;
        }
        let ours = FileId::of(&users).map_err(EmbeddedError::file("inspect", &path))?;
        // Between opening and locking, the directory may have been deleted and made again.
        if FileId::at(&path).is_ok_and(|there| there == ours) {
            return Ok(users);
        }
        patience.pause()?;
    }
}

/// Waits until a server is ready *and* supervised: starts a supervisor when there is none, and
/// passes on its failure.
fn bring_up(
    dir: &ClusterDir,
    options: &EmbeddedOptions,
    patience: &mut Patience,
) -> Result<(Postmaster, Option<Supervisor>), EmbeddedError> {
    let lock_path = dir.supervisor_lock();
    let is_supervised = || lock::is_held(&lock_path).map_err(EmbeddedError::file("open", &lock_path));
    let mut ours: Option<Supervisor> = None;
    let mut killed = 0;
    loop {
        // In this order: a supervisor never gives up its lock while we hold our share of
        // `users.lock`.
        if let Some(server) = dir.ready()
            && is_supervised()?
        {
            return Ok((server, ours));
        }
        // A failure of the supervisor is ours. One that found another in charge just leaves, and
        // one that was killed is replaced, as it would be a moment later by our watcher.
        match ours.as_mut().map(Supervisor::end).transpose()?.flatten() {
            None => {}
            Some(End::Killed(status)) if killed == KILLED_MAX => return Err(without_a_word(status)),
            Some(End::Killed(_)) => (ours, killed) = (None, killed + 1),
            Some(End::Left) => ours = None,
        }
        if ours.is_none() && !is_supervised()? {
            let began = Instant::now();
            ours = Some(start_supervisor(dir, options)?);
            patience.excuse(began.elapsed());
        }
        patience.pause()?;
    }
}

fn without_a_word(status: ExitStatus) -> EmbeddedError {
    let said = format!("the supervisor of PostgreSQL ended without a word ({status})");
    EmbeddedError::Supervisor { said, unreachable: true }
}

fn start_supervisor(dir: &ClusterDir, options: &EmbeddedOptions) -> Result<Supervisor, EmbeddedError> {
    let pgdata = dir.pgdata();
    let wanted = dir.major();
    let located = Binaries::locate(options, wanted.or(options.major));
    let binaries = match wanted {
        Some(_) => located.map_err(|error| error.needed_by(&pgdata))?,
        None => located?,
    };
    if let Some(have) = wanted.filter(|have| *have != binaries.major) {
        return Err(EmbeddedError::WrongMajor { pgdata, have, found: binaries.version });
    }
    let run_as = identity::choose(options, &pgdata, &[&pgdata, &binaries.dir.join("postgres")])?;
    let version = binaries.version.clone();
    (options.progress)(&Progress::Starting { version, data_dir: dir.base().to_owned() });
    Supervisor::spawn(dir, options, &binaries, run_as)
}

/// How long a start may still take.
struct Patience<'a> {
    dir: &'a ClusterDir,
    limit: Duration,
    began: Instant,
    excused: Duration,
}

impl<'a> Patience<'a> {
    fn new(dir: &'a ClusterDir, options: &EmbeddedOptions) -> Self {
        Self { dir, limit: options.start_timeout, began: Instant::now(), excused: Duration::ZERO }
    }

    /// Fetching binaries has a limit of its own and may take longer than a start.
    fn excuse(&mut self, spent: Duration) {
        self.excused += spent;
    }

    fn pause(&self) -> Result<(), EmbeddedError> {
        if self.began.elapsed().saturating_sub(self.excused) >= self.limit {
            let (dir, log) = (self.dir.base().to_owned(), self.dir.postgres_log());
            return Err(EmbeddedError::NotReady { dir, log, waited: self.limit });
        }
        std::thread::sleep(CHECK_EVERY);
        Ok(())
    }
}
