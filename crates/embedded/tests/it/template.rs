//! One cluster that is made once and copied, for tests that are not about making one: a tenth of
//! the time.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use crate::home::Home;
use crate::program::{BINARY, Program};

/// Puts a cluster that was shut down into a new data directory.
pub(crate) fn copy_cluster_into(data_dir: &Path) {
    let shelf = Path::new(env!("CARGO_TARGET_TMPDIR")).join("embedded-template");
    fs::create_dir_all(&shelf).unwrap();
    let guard = File::create(shelf.join("lock")).unwrap();
    let wanted = shelf.join(name());
    // Many copy at a time; one makes the cluster and clears older ones away, while none copies.
    loop {
        guard.lock_shared().unwrap();
        if wanted.exists() {
            copy(&wanted, &data_dir.join("pg"));
            fs::write(data_dir.join("users.lock"), "").unwrap();
            return;
        }
        guard.unlock().unwrap();
        guard.lock().unwrap();
        if !wanted.exists() {
            make(&shelf, &wanted);
        }
        guard.unlock().unwrap();
    }
}

fn make(shelf: &Path, wanted: &Path) {
    for old in fs::read_dir(shelf).unwrap().flatten().filter(|entry| entry.path().is_dir()) {
        fs::remove_dir_all(old.path()).unwrap();
    }
    let home = Home::new();
    Program::start(&home).kill();
    home.until_nothing_is_left();
    let unfinished = shelf.join("unfinished");
    copy(&home.pgdata(), &unfinished);
    fs::rename(unfinished, wanted).unwrap();
}

/// Another program or another PostgreSQL makes another cluster.
fn name() -> String {
    let found = Command::new(BINARY).arg("find").output().unwrap();
    let binaries = PathBuf::from(String::from_utf8(found.stdout).unwrap().trim());
    let age = |path: &Path| {
        let changed = path.metadata().and_then(|found| found.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
        changed.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos()
    };
    format!("{}-{}", age(Path::new(BINARY)), age(&binaries.join("postgres")))
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").args([from, to]).status().unwrap();
    assert!(copied.success());
}
