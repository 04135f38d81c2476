//! Sees to it that a supervisor is in charge for as long as this program uses the server.
//!
//! A thread waits for the end of the supervisor and puts another in its place. Without it, a server
//! whose supervisor was killed would outlive its last user, and one that could not be started for a
//! while (a full disk) would stay down.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::join::join;
use crate::cluster_dir::ClusterDir;
use crate::error::EmbeddedError;
use crate::lock::{self, FileId};
use crate::supervisor::Supervisor;
use crate::{EmbeddedOptions, Progress};

/// The pause after a failure doubles from the first to the last.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LAST_PAUSE: Duration = Duration::from_secs(30);

/// Whether this program still has something to watch over.
#[derive(Debug)]
pub(super) struct Membership {
    given_up: AtomicBool,
    users_lock: PathBuf,
    ours: FileId,
}

impl Membership {
    pub(super) fn of(users: &File, users_lock: PathBuf) -> Result<Self, EmbeddedError> {
        let ours = FileId::of(users).map_err(EmbeddedError::file("inspect", &users_lock))?;
        Ok(Self { given_up: AtomicBool::new(false), users_lock, ours })
    }

    pub(super) fn give_up(&self) {
        self.given_up.store(true, Ordering::Release);
    }

    /// A data directory that was deleted or replaced is not the one this program joined: it is not
    /// made again.
    fn is_over(&self) -> bool {
        let replaced = FileId::at(&self.users_lock)
            .map_or_else(|error| error.kind() == std::io::ErrorKind::NotFound, |there| there != self.ours);
        self.given_up.load(Ordering::Acquire) || replaced
    }
}

pub(super) fn watch(
    supervisor: Option<Supervisor>,
    dir: ClusterDir,
    options: EmbeddedOptions,
    membership: Arc<Membership>,
) {
    let body = move || {
        let mut current = supervisor;
        let mut pause = FIRST_PAUSE;
        loop {
            let waited = match current.take() {
                Some(ours) => {
                    ours.wait();
                    Ok(())
                }
                None => wait_for_end_of_another(&dir),
            };
            if membership.is_over() {
                return;
            }
            // As a user of its own, so that a program that gives up meanwhile does not stop the
            // server half way up.
            match waited.and_then(|()| join(&dir, &options)) {
                Ok(joined) => {
                    lock::release(&joined.users);
                    (current, pause) = (joined.supervisor, FIRST_PAUSE);
                }
                Err(error) => {
                    // The supervisor's own log has it too, but an operator reads this program's.
                    (options.progress)(&Progress::Down { why: error.sentence() });
                    std::thread::sleep(pause);
                    pause = LAST_PAUSE.min(pause * 2);
                }
            }
        }
    };
    // Without the thread a killed supervisor is not replaced; the server runs all the same.
    let _ = std::thread::Builder::new().name("reveille-embedded".to_owned()).spawn(body);
}

fn wait_for_end_of_another(dir: &ClusterDir) -> Result<(), EmbeddedError> {
    let path = dir.supervisor_lock();
    let ended = lock::open(&path).and_then(|file| {
        lock::shared(&file)?;
        lock::release(&file);
        Ok(())
    });
    ended.map_err(EmbeddedError::file("lock", &path))
}
