//! Made-up manifests, as the design draws them and not.

use super::*;
use crate::tidy::tests::{assert_one_fault, faults};

/// A manifest that inherits all it should; what follows begins on line 10.
fn manifest(name: &str, rest: &str) -> String {
    let publish = if ["own-table", "reveille-testkit", "reveille-chaos", "reveille-bench", "xtask"].contains(&name) {
        "false"
    } else {
        "true"
    };
    format!(
        "[package]\nname = \"{name}\"\nedition.workspace = true\nrust-version.workspace = true\n\
         license.workspace = true\npublish = {publish}\n\n[lints]\nworkspace = true\n{rest}"
    )
}

fn uses(name: &str, section: &str, dependency: &str) -> String {
    manifest(name, &format!("[{section}]\n{dependency}.workspace = true\n"))
}

#[track_caller]
fn assert_allowed(name: &str, section: &str, dependency: &str) {
    assert_eq!(faults(check, &[("crates/a/Cargo.toml", &uses(name, section, dependency))]), [""; 0]);
}

#[track_caller]
fn assert_refused(name: &str, section: &str, dependency: &str) {
    let words = format!("{name} may not use {dependency}");
    assert_one_fault(
        check,
        &[("crates/a/Cargo.toml", &uses(name, section, dependency))],
        "crates/a/Cargo.toml:11",
        &words,
    );
}

#[test]
fn the_edges_of_the_design_pass() {
    assert_allowed("reveille-wake", "dependencies", "tokio");
    assert_allowed("reveille-wake", "dependencies", "fastrand");
    assert_allowed("reveille-embedded", "dependencies", "tar");
    assert_allowed("reveille", "dependencies", "reveille-wake");
    assert_allowed("reveille", "dependencies", "tokio-postgres");
    assert_allowed("reveille-server", "dependencies", "axum");
    assert_allowed("reveille-duroxide", "dependencies", "duroxide");
    assert_allowed("reveille-cli", "dependencies", "reveille-embedded");
}

#[test]
fn the_wake_engine_uses_tokio_and_chance_only() {
    for dependency in ["serde", "tokio-postgres", "axum", "reveille", "tracing"] {
        assert_refused("reveille-wake", "dependencies", dependency);
    }
}

#[test]
fn the_private_postgresql_uses_none_of_ours_and_no_runtime() {
    for dependency in ["tokio", "tokio-postgres", "reveille", "reveille-wake"] {
        assert_refused("reveille-embedded", "dependencies", dependency);
    }
}

#[test]
fn the_library_knows_no_door() {
    for dependency in ["axum", "clap", "duroxide", "reveille-embedded", "reveille-server"] {
        assert_refused("reveille", "dependencies", dependency);
    }
}

#[test]
fn the_doors_hold_no_connection() {
    assert_refused("reveille-server", "dependencies", "tokio-postgres");
    assert_refused("reveille-server", "dependencies", "deadpool-postgres");
    assert_refused("reveille-cli", "dependencies", "tokio-postgres");
}

#[test]
fn an_unpublished_crate_is_for_tests_only() {
    assert_allowed("reveille", "dev-dependencies", "reveille-testkit");
    assert_refused("reveille", "dependencies", "reveille-testkit");
    assert_refused("reveille", "build-dependencies", "xtask");
    assert_refused("reveille-cli", "dependencies", "reveille-bench");
}

#[test]
fn no_row_lets_a_published_crate_use_an_unpublished_one() {
    let unpublished: Vec<_> =
        PACKAGES.iter().filter(|package| !package.publishes).map(|package| package.name).collect();

    for package in PACKAGES.iter().filter(|package| package.publishes) {
        assert!(package.uses.iter().all(|used| !unpublished.contains(used)), "{}", package.name);
    }
}

#[test]
fn tests_may_use_foreign_crates_but_no_further_ones_of_ours() {
    assert_allowed("reveille-embedded", "dev-dependencies", "tokio-postgres");
    assert_refused("reveille", "dev-dependencies", "reveille-server");
}

#[test]
fn dependencies_of_one_platform_are_judged_too() {
    assert_refused("reveille-wake", "target.'cfg(unix)'.dependencies", "nix");
}

#[test]
fn shuttle_is_allowed_behind_its_flag_only() {
    assert_allowed("reveille-wake", "target.'cfg(shuttle)'.dependencies", "shuttle");
    assert_refused("reveille-wake", "target.'cfg(shuttle)'.dependencies", "serde");
    assert_refused("reveille-wake", "dependencies", "shuttle");
}

#[test]
fn a_renamed_dependency_is_judged_by_its_package() {
    let workspace = "[workspace.dependencies]\npg = { version = \"1\", package = \"tokio-postgres\" }\n";
    let files = [("Cargo.toml", workspace), ("crates/a/Cargo.toml", &*uses("reveille-server", "dependencies", "pg"))];

    assert_one_fault(check, &files, "crates/a/Cargo.toml:11", "may not use tokio-postgres");
}

#[test]
fn a_package_without_a_row_is_a_fault() {
    let text = manifest("reveille-extra", "");

    assert_one_fault(check, &[("crates/extra/Cargo.toml", &text)], "crates/extra/Cargo.toml:1", "no row");
}

#[test]
fn a_crate_is_published_as_its_row_says() {
    let files = [("xtask/Cargo.toml", &*manifest("xtask", "").replace("publish = false", ""))];
    assert_one_fault(check, &files, "xtask/Cargo.toml:1", "publish = false");

    let files = [("crates/a/Cargo.toml", &*manifest("reveille", "").replace("publish = true", "publish = false"))];
    assert_one_fault(check, &files, "crates/a/Cargo.toml:1", "for users");
}

#[test]
fn settings_of_the_workspace_are_inherited() {
    for (setting, inherited) in [
        ("edition", "edition.workspace = true"),
        ("rust-version", "rust-version.workspace = true"),
        ("license", "license.workspace = true"),
        ("lints", "[lints]\nworkspace = true"),
    ] {
        let text = manifest("reveille", "").replace(inherited, "");
        assert_one_fault(check, &[("crates/a/Cargo.toml", &text)], "crates/a/Cargo.toml:1", setting);
    }
}

#[test]
fn a_dependency_with_a_version_of_its_own_is_a_fault() {
    for entry in ["fastrand = \"2\"", "fastrand = { version = \"2\" }", "fastrand = { path = \"../x\" }"] {
        let text = manifest("reveille", &format!("[dev-dependencies]\n{entry}\n"));
        assert_one_fault(check, &[("crates/a/Cargo.toml", &text)], "crates/a/Cargo.toml:11", "fastrand.workspace");
    }
}

#[test]
fn a_manifest_that_cannot_be_read_is_a_fault() {
    assert_one_fault(check, &[("crates/a/Cargo.toml", "[package")], "crates/a/Cargo.toml:1", "cannot be read");
    assert_one_fault(check, &[("crates/a/Cargo.toml", "[lints]")], "crates/a/Cargo.toml:1", "no [package]");
}

#[test]
fn manifests_of_other_workspaces_are_left_alone() {
    assert_eq!(faults(check, &[("bench/peers/x/Cargo.toml", "[package]\nname = \"x\"")]), [""; 0]);
}
