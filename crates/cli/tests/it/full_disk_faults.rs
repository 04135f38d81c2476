//! A full disk under the private PostgreSQL is reported in the log of the server.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::Command;

use crate::support::{Home, PATIENCE, Serving};

/// Whether this test can run. In CI it must run, so that it is not skipped for ever unnoticed.
#[expect(clippy::disallowed_methods, reason = "CI is recognised by its environment")]
async fn mounts() -> bool {
    let mut command = Command::new("unshare");
    let tried = command.args(["--mount", "mount", "-t", "tmpfs", "none", "/mnt"]).stderr(Stdio::null()).status().await;
    let possible = tried.is_ok_and(|status| status.success());
    assert!(possible || std::env::var_os("CI").is_none(), "CI must run this, but it needs root and the right to mount");
    if !possible {
        eprintln!("skipped: this needs root and the right to mount");
    }
    possible
}

/// The same command, with a small file system as its data directory.
fn on_a_small_disk(home: &Home, command: &Command) -> Command {
    fs::create_dir(home.data_dir()).expect("a directory can be made");
    let mount = format!("mount -t tmpfs -o size=96m,mode=711 none {} && exec \"$@\"", home.data_dir().display());
    let command = command.as_std();
    let mut within = Command::new("unshare");
    within.args(["--mount", "sh", "-c", &mount, "sh"]).arg(command.get_program()).args(command.get_args());
    within.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    within.current_dir(home.path()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    within.kill_on_drop(true).process_group(0);
    within
}

fn fill(dir: &Path) {
    let mut file = fs::File::create(dir.join("fill")).expect("a file can be made");
    while file.write_all(&[0; 4096]).is_ok() {}
}

#[tokio::test]
async fn a_full_disk_is_reported_in_the_log_of_the_server() {
    if !mounts().await {
        return;
    }
    let home = Home::new();
    let serving = Serving::start(on_a_small_disk(&home, &home.command(&["serve", "--listen", "127.0.0.1:0"]))).await;
    let seen_by_it = PathBuf::from(format!("/proc/{}/root{}", serving.pid(), home.data_dir().display()));
    let postmaster = fs::read_to_string(seen_by_it.join("pg/postmaster.pid")).unwrap();
    let postmaster = postmaster.lines().next().and_then(|pid| pid.parse().ok()).unwrap();

    fill(&seen_by_it);
    kill(Pid::from_raw(postmaster), Signal::SIGKILL).unwrap();

    let begun = Instant::now();
    let sentence = format!("no space left on the device that holds {}", home.data_dir().display());
    while !serving.log().contains(&sentence) {
        assert!(begun.elapsed() < PATIENCE, "it was not reported: {sentence}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
