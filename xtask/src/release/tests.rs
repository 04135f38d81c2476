//! Versions, change logs, archives and a whole release, each in a repository of its own.

use super::*;

const MANIFEST: &str = r#"[workspace.package]
version = "0.1.0" # one for all

[workspace.dependencies]
reveille = { path = "crates/reveille", version = "0.1.0" }
reveille-testkit = { path = "crates/testkit" }
semver = "1"
"#;

const CHANGE_LOG: &str = "# Changelog\n\n## Unreleased\n\n- A queue.\n\n## 0.0.1 - 2026-01-01\n\n- Nothing.\n";

fn version(text: &str) -> Version {
    text.parse().unwrap()
}

fn refusal<T: std::fmt::Debug>(done: anyhow::Result<T>) -> String {
    format!("{:#}", done.unwrap_err())
}

#[test]
fn a_release_names_its_version_wherever_one_of_our_crates_is_published() {
    let manifest = manifest::with_version(MANIFEST, &version("0.2.0")).unwrap();

    assert_eq!(manifest, MANIFEST.replace("0.1.0", "0.2.0"));
}

#[test]
fn the_first_release_has_the_version_that_is_there() {
    assert_eq!(manifest::with_version(MANIFEST, &version("0.1.0")).unwrap(), MANIFEST);
}

#[test]
fn an_older_version_is_refused() {
    let refused = refusal(manifest::with_version(MANIFEST, &version("0.0.9")));

    assert_eq!(refused, "0.0.9 is older than 0.1.0, the version of the workspace");
}

#[test]
fn the_change_log_keeps_what_was_and_has_a_place_for_what_comes() {
    let released = change_log::with_release(CHANGE_LOG, &version("0.2.0"), "2026-11-19").unwrap();

    let expected =
        "# Changelog\n\n## Unreleased\n\n## 0.2.0 - 2026-11-19\n\n- A queue.\n\n## 0.0.1 - 2026-01-01\n\n- Nothing.\n";
    assert_eq!(released, expected);
}

#[test]
fn a_release_of_nothing_is_refused() {
    let empty = CHANGE_LOG.replace("- A queue.\n", "");

    let refused = refusal(change_log::with_release(&empty, &version("0.2.0"), "2026-11-19"));

    assert_eq!(refused, "CHANGELOG.md has nothing under \"Unreleased\"");
}

/// A repository with one commit, by an author that only it knows.
fn repository() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let git = |arguments: &[&str]| run(dir.path(), "git", arguments).unwrap();
    git(&["init", "--quiet"]);
    git(&["config", "user.name", "Ada"]);
    git(&["config", "user.email", "ada@example.org"]);
    fs::write(dir.path().join("Cargo.toml"), MANIFEST).unwrap();
    fs::write(dir.path().join("Cargo.lock"), "").unwrap();
    fs::write(dir.path().join("CHANGELOG.md"), CHANGE_LOG).unwrap();
    git(&["add", "."]);
    git(&["commit", "--quiet", "--message", "Begin"]);
    dir
}

fn has_git() -> bool {
    Command::new("git").arg("--version").output().is_ok()
}

#[test]
fn the_commit_and_the_tag_hold_the_version() {
    // A machine that only builds and tests need not have git.
    if !has_git() {
        return;
    }
    let dir = repository();
    let root = dir.path();
    let release = Release { version: version("0.2.0"), rehearsal: Rehearsal::No };

    release.refuse_what_is_not_ready(root).unwrap();
    Texts::of(root).unwrap().released_as(&release.version, "2026-11-19").unwrap().write(root).unwrap();
    release.commit_and_tag(root).unwrap();

    assert_eq!(
        read(root, "git", &["log", "-1", "--format=%s %D"]).unwrap().split(" (").next(),
        Some("Release 0.2.0 HEAD -> master, tag: v0.2.0")
    );
    assert!(read(root, "git", &["show", "v0.2.0:Cargo.toml"]).unwrap().contains("version = \"0.2.0\" # one for all"));
    assert_eq!(refusal(release.refuse_what_is_not_ready(root)), "the tag v0.2.0 exists already");
}

#[test]
fn changes_that_are_not_committed_are_refused() {
    if !has_git() {
        return;
    }
    let dir = repository();
    fs::write(dir.path().join("new"), "").unwrap();
    let release = Release { version: version("0.2.0"), rehearsal: Rehearsal::No };

    let refused = refusal(release.refuse_what_is_not_ready(dir.path()));

    assert_eq!(refused, "the tree has changes that are not committed:\n?? new");
}

#[test]
fn an_archive_has_one_directory_and_a_checksum_that_sha256sum_accepts() {
    let dir = tempfile::tempdir().unwrap();
    let stage = dir.path().join("stage");
    fs::create_dir_all(stage.join("bin")).unwrap();
    fs::write(stage.join("bin/reveille"), "a program").unwrap();
    let archive = dir.path().join("reveille-0.2.0.tar.gz");

    archive::pack(&stage, "reveille-0.2.0", &archive).unwrap();
    archive::with_checksum(&archive).unwrap();

    run(dir.path(), "sha256sum", &["--check", "--status", "reveille-0.2.0.tar.gz.sha256"]).unwrap();
    let listed = read(dir.path(), "tar", &["--list", "--file", "reveille-0.2.0.tar.gz"]).unwrap();
    assert_eq!(listed, "reveille-0.2.0/\nreveille-0.2.0/bin\nreveille-0.2.0/bin/reveille");
}
