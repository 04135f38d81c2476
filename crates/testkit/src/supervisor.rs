//! Finds `reveille-postgres` for test programs, which cargo does not build for them.

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::ROOT;

/// The one place of this crate that reads the environment.
#[expect(clippy::disallowed_methods, reason = "the test kit is configured by its runner's environment")]
pub(crate) fn environment(name: &str) -> Option<OsString> {
    env::var_os(name)
}

/// The supervisor's binary: beside the target directory's other programs, else built there once.
pub(crate) fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let test = env::current_exe().expect("a test program knows its path");
        let profile = profile_directory(&test).expect("a test program lies below its target directory");
        let program = profile.join("reveille-postgres");
        if !program.exists() {
            build(profile, &program);
        }
        program
    })
}

/// `target/debug` for `target/debug/deps/it-0123`, also for examples and plain programs.
fn profile_directory(test: &Path) -> Option<&Path> {
    let dir = test.parent()?;
    let nested = dir.file_name().is_some_and(|name| name == "deps" || name == "examples");
    if nested { dir.parent() } else { Some(dir) }
}

/// Test programs start together; one builds, the others wait for it.
fn build(profile: &Path, program: &Path) {
    let lock = File::create(profile.join("reveille-postgres.build-lock")).expect("the target directory can be written");
    lock.lock().expect("a file can be locked");
    if program.exists() {
        return;
    }
    let mut cargo = Command::new(environment("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--bin", "reveille-postgres", "--target-dir"]);
    cargo.arg(profile.parent().expect("a profile lies in a target directory")).current_dir(ROOT);
    if profile.file_name().is_some_and(|name| name == "release") {
        cargo.arg("--release");
    }
    let status = cargo.status().expect("cargo runs");
    assert!(status.success(), "`cargo build --bin reveille-postgres` failed: {status}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_programs_and_plain_ones_share_a_directory() {
        for test in ["/t/debug/deps/it-01", "/t/debug/examples/hello", "/t/debug/reveille"] {
            assert_eq!(profile_directory(Path::new(test)), Some(Path::new("/t/debug")), "{test}");
        }
    }
}
