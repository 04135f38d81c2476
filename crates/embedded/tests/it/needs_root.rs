//! What only root can try: other users, private homes, full and read-only file systems.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::process::{Command, Stdio};

use nix::unistd::{User, geteuid};

use crate::home::Home;
use crate::program::{BINARY, Program, disposable, durable, refusal, within};
use crate::sql::ask;

const NOBODY: [&str; 4] = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"];

/// Whether a test can be done. In CI it must be, so that it is not skipped for ever unnoticed.
#[expect(clippy::disallowed_methods, reason = "the environment shows whether this is CI")]
fn possible(what: &str, is_possible: bool) -> bool {
    assert!(is_possible || std::env::var_os("CI").is_none(), "CI must run this, but {what}");
    if !is_possible {
        eprintln!("skipped: {what}");
    }
    is_possible
}

fn root() -> bool {
    possible("this needs root", geteuid().is_root())
}

fn mounts() -> bool {
    let answer = Command::new("unshare")
        .args(["--mount", "mount", "-t", "tmpfs", "none", "/mnt"])
        .stderr(Stdio::null())
        .status();
    possible("this needs root and the right to mount", answer.is_ok_and(|status| status.success()))
}

#[test]
fn an_ordinary_user_gets_a_server_and_needs_no_home() {
    if !root() {
        return;
    }
    let home = Home::new();
    // The checkout may be where the user `nobody` may not enter.
    let binary = home.path().join("reveille-postgres");
    fs::copy(BINARY, &binary).unwrap();
    let dir = home.data().to_owned();
    fs::create_dir(&dir).unwrap();
    let nobody = User::from_name("nobody").unwrap().unwrap();
    chown(&dir, Some(nobody.uid.as_raw()), Some(nobody.gid.as_raw())).unwrap();
    let as_nobody = || {
        let mut command = Command::new(NOBODY[0]);
        command.args(&NOBODY[1..]).arg(&binary).args(["run", "--disposable", "--data-dir"]).arg(dir.join("of-nobody"));
        command.env_clear().env("PATH", "/usr/bin:/bin");
        command
    };

    let program = Program::spawn(&home, &mut as_nobody());

    assert_eq!(ask(program.connection(), "select 1"), "1");
    program.kill();
    let again = Program::spawn(&home, &mut as_nobody());
    assert_eq!(ask(again.connection(), "select 1"), "1");
    // Root runs the cluster as its owner.
    let mut as_root = Command::new(BINARY);
    let root = Program::spawn(&home, as_root.args(["run", "--data-dir"]).arg(dir.join("of-nobody")));
    assert_eq!(ask(root.connection(), "select 1"), "1");
    drop((again, root));
    crate::fault_harness::until(crate::fault_harness::GONE_WITHIN, "the end of the server", || {
        crate::fault_harness::processes_of(&dir).is_empty()
    });
}

#[test]
fn a_cluster_of_another_user_is_refused() {
    if !root() {
        return;
    }
    let home = Home::with_cluster();
    let binary = home.path().join("reveille-postgres");
    fs::copy(BINARY, &binary).unwrap();
    let mut as_nobody = Command::new(NOBODY[0]);
    as_nobody.args(&NOBODY[1..]).arg(&binary).arg("run").arg("--data-dir").arg(home.data());

    refusal(&home, &mut as_nobody).says(1, &["cannot", home.data().to_str().unwrap(), "Permission denied"]);

    chown(home.pgdata(), Some(0), Some(0)).unwrap();
    refusal(&home, &mut disposable(&home))
        .says(1, &["pg belongs to root, and PostgreSQL does not run as root", "chown"]);
}

#[test]
fn a_data_directory_under_a_private_home_is_refused() {
    if !root() {
        return;
    }
    let home = Home::named("private/data");
    let private = home.data().parent().unwrap().to_owned();
    fs::create_dir(&private).unwrap();
    fs::set_permissions(&private, fs::Permissions::from_mode(0o700)).unwrap();

    let refused = refusal(&home, &mut disposable(&home));

    refused.says(1, &["does not run as root", "may not enter", private.to_str().unwrap(), "/var/lib/reveille"]);
    let binary = home.path().join("reveille-postgres");
    fs::copy(BINARY, &binary).unwrap();
    let mut as_nobody = Command::new(NOBODY[0]);
    as_nobody.args(&NOBODY[1..]).arg(&binary).arg("run").arg("--data-dir").arg(home.data());
    refusal(&home, &mut as_nobody).says(1, &["cannot make the data directory", "Permission denied"]);
}

#[test]
fn an_unknown_user_to_run_as_is_refused() {
    if !root() {
        return;
    }
    let home = Home::new();

    let refused = refusal(&home, disposable(&home).env("REVEILLE_PG_USER", "nobody-of-that-name"));

    refused.says(1, &["does not run as root", "no user nobody-of-that-name", "REVEILLE_PG_USER"]);
}

#[test]
fn a_known_user_to_run_as_runs_the_server() {
    if !root() {
        return;
    }
    let home = Home::new();
    let mut command = disposable(&home);

    let _program = Program::spawn(&home, command.env("REVEILLE_PG_USER", "nobody"));

    let nobody = User::from_name("nobody").unwrap().unwrap().uid.as_raw();
    let status = fs::metadata(format!("/proc/{}", home.postmaster().unwrap())).unwrap();
    assert_eq!(std::os::unix::fs::MetadataExt::uid(&status), nobody);
}

#[test]
fn a_disk_that_is_full_at_initdb_is_named_and_left_clean() {
    if !mounts() {
        return;
    }
    let home = Home::new();
    fs::create_dir(home.data()).unwrap();
    let (dir, seen) = (home.data().display(), home.path().join("seen"));
    let script = format!(
        "mount -t tmpfs -o size=12m,mode=711 none {dir} || exit 99; \"$@\"; code=$?; ls {dir} > {}; exit $code",
        seen.display()
    );

    let refused = refusal(&home, &mut within(&["unshare", "--mount", "sh"], &script, &durable(&home)));

    refused.says(1, &["no space left on the device that holds", home.data().to_str().unwrap(), "free some"]);
    let left = fs::read_to_string(seen).unwrap();
    assert!(left.contains("users.lock") && !left.contains("pg"), "{left}");
}

#[test]
fn a_disk_that_is_full_before_anything_is_made_is_named() {
    if !mounts() {
        return;
    }
    let home = Home::new();
    fs::create_dir(home.data()).unwrap();
    let dir = home.data().display();
    // No room for a single file: the file system may have two inodes, and its root and `lost+found`
    // are there already.
    let script =
        format!("mount -t tmpfs -o nr_inodes=2,mode=711 none {dir} && mkdir {dir}/lost+found || exit 99; exec \"$@\"");

    let refused = refusal(&home, &mut within(&["unshare", "--mount", "sh"], &script, &durable(&home)));

    refused.says(1, &["no space left on the device that holds", home.data().to_str().unwrap()]);
}

#[test]
fn a_read_only_file_system_is_named() {
    if !mounts() {
        return;
    }
    let home = Home::with_cluster();
    let script =
        format!("mount --bind {0} {0} && mount -o remount,bind,ro {0} || exit 99; exec \"$@\"", home.data().display());

    let refused = refusal(&home, &mut within(&["unshare", "--mount", "sh"], &script, &disposable(&home)));

    refused.says(1, &["cannot open", "users.lock", "Read-only file system"]);
}
