//! Makes a cluster, whole or not at all.

use std::fs::{self, File};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};

use super::Duty;
use super::server::{quiet_command, when_all_are_gone};
use crate::Durability;
use crate::cluster_dir::{ClusterDir, make_private};
use crate::error::EmbeddedError;

/// Makes the cluster if there is none. initdb works under another name, so that a crash half way
/// leaves nothing that looks like a cluster.
pub(super) fn make_cluster(dir: &ClusterDir, duty: &Duty) -> Result<(), EmbeddedError> {
    let pgdata = dir.pgdata();
    if let Some(have) = dir.major() {
        // Another supervisor made it while we were being started.
        return if have == duty.major { Ok(()) } else { Err(wrong_major(dir, duty, have)) };
    }
    if pgdata.exists() {
        let what = "not a data directory of Reveille: its `pg` is not a cluster";
        return Err(EmbeddedError::ForeignDirectory { dir: dir.base().to_owned(), what });
    }
    // Another initdb may still be at work: of a supervisor that was killed.
    let alive = when_all_are_gone(dir)?;
    let unfinished = dir.unfinished_pgdata();
    let _ = fs::remove_dir_all(&unfinished);
    make_private(&unfinished, duty.run_as)?;
    let made = run_initdb(dir, duty, &alive);
    if made.is_err() {
        // A full disk needs the space back before anything else.
        let _ = fs::remove_dir_all(&unfinished);
    }
    made?;
    fs::rename(&unfinished, &pgdata).map_err(EmbeddedError::file("rename to", &pgdata))
}

/// `alive` goes to initdb and to all that it starts, so that the lock is held until the last of
/// these processes is gone.
fn run_initdb(dir: &ClusterDir, duty: &Duty, alive: &File) -> Result<(), EmbeddedError> {
    let inherit = fcntl(alive, FcntlArg::F_SETFD(FdFlag::empty()));
    inherit.map_err(|error| EmbeddedError::file("hand on", &dir.alive_lock())(error.into()))?;
    let program = duty.binaries.join("initdb");
    let mut command = quiet_command(&program, duty.run_as);
    // The C locale sorts alike everywhere and for ever: no index breaks when a library of the
    // system changes. Over TCP, where other users of the machine can knock, a password is needed.
    command.arg("-D").arg(dir.unfinished_pgdata()).args(["-U", "postgres", "-E", "UTF8", "--locale=C"]);
    command.args(["--data-checksums", "--auth-local=trust", "--auth-host=scram-sha-256"]);
    if duty.durability == Durability::Disposable {
        command.arg("--no-sync");
    }
    let output = command.output().map_err(EmbeddedError::program(&program))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("No space left on device") {
        return Err(EmbeddedError::DiskFull { dir: dir.base().to_owned() });
    }
    let fault = said.lines().find(|line| line.contains("error:") || line.contains("FATAL:"));
    let said = fault.or_else(|| said.lines().last()).unwrap_or("it said nothing").trim().to_owned();
    Err(EmbeddedError::InitDb { dir: dir.base().to_owned(), said })
}

fn wrong_major(dir: &ClusterDir, duty: &Duty, have: u32) -> EmbeddedError {
    EmbeddedError::WrongMajor { pgdata: dir.pgdata(), have, found: duty.major.to_string() }
}
