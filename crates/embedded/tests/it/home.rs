//! A directory of its own for each test, and what lies in it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use nix::sys::statvfs::statvfs;
use tempfile::TempDir;

use crate::fault_harness::{GONE_WITHIN, end_leftovers, is_free, processes_of, supervisors_of, until};
use crate::template::copy_cluster_into;

/// Outlives the programs that use it if it is made before them.
pub(crate) struct Home {
    temp: TempDir,
    /// Holds the data directory.
    _base: TempDir,
    data: PathBuf,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self::named("data")
    }

    /// With a cluster in the data directory.
    pub(crate) fn with_cluster() -> Self {
        let home = Self::new();
        fs::create_dir(home.data()).unwrap();
        fs::set_permissions(home.data(), fs::Permissions::from_mode(0o711)).unwrap();
        copy_cluster_into(home.data());
        home
    }

    /// With another name for the data directory.
    pub(crate) fn named(data: &str) -> Self {
        let (temp, base) = (enterable_in("/tmp"), enterable_in(fast_directory()));
        let data = base.path().join(data);
        Self { temp, _base: base, data }
    }

    /// For everything that is not the data directory.
    pub(crate) fn path(&self) -> &Path {
        self.temp.path()
    }

    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    pub(crate) fn pgdata(&self) -> PathBuf {
        self.data.join("pg")
    }

    pub(crate) fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.data.join("postgres.log")).unwrap_or_default()).into_owned()
    }

    pub(crate) fn supervisor_log(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.data.join("supervisor.log")).unwrap_or_default()).into_owned()
    }

    /// The server's process id, by its pid file.
    pub(crate) fn postmaster(&self) -> Option<i32> {
        fs::read_to_string(self.pgdata().join("postmaster.pid")).ok()?.lines().next()?.trim().parse().ok()
    }

    /// The one process that guards the server.
    #[track_caller]
    pub(crate) fn supervisor(&self) -> i32 {
        let mut found = Vec::new();
        // One that came second leaves after a moment.
        until(GONE_WITHIN, "a single supervisor", || {
            found = supervisors_of(self.data());
            found.len() == 1
        });
        found[0]
    }

    pub(crate) fn was_shut_down(&self) -> bool {
        self.log().trim_end().ends_with("database system is shut down")
    }

    /// Waits until no process of the cluster is left: by the kernel's lock, and by name.
    #[track_caller]
    pub(crate) fn until_nothing_is_left(&self) {
        until(GONE_WITHIN, "the end of every process of the cluster", || {
            is_free(&self.data.join("alive.lock")) && processes_of(self.data()).is_empty()
        });
    }
}

/// The server of a program that is root runs as another user, who must be able to enter.
fn enterable_in(parent: &str) -> TempDir {
    let made = tempfile::Builder::new().prefix("reveille-it-").tempdir_in(parent).unwrap();
    fs::set_permissions(made.path(), fs::Permissions::from_mode(0o711)).unwrap();
    made
}

/// In memory if there is room: making a cluster then takes a third of the time. Power cuts are not
/// tested here.
fn fast_directory() -> &'static str {
    let room = statvfs("/dev/shm").map_or(0, |found| found.blocks_available() * found.fragment_size());
    if room > 2 << 30 { "/dev/shm" } else { "/tmp" }
}

impl Drop for Home {
    fn drop(&mut self) {
        if !processes_of(self.data()).is_empty() && !std::thread::panicking() {
            until(GONE_WITHIN, "the end of the cluster's processes after the test", || {
                processes_of(self.data()).is_empty()
            });
        }
        if std::thread::panicking() {
            eprintln!("--- supervisor.log\n{}--- postgres.log\n{}---", self.supervisor_log(), self.log());
            end_leftovers(self.data());
        }
    }
}
