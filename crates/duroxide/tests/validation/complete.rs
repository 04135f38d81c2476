//! Whether the suite has functions that are not tested here, or no longer has some that are.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{list, special};

#[test]
fn every_function_of_the_suite_is_a_test_here() {
    let listed: BTreeSet<String> = list::LISTED.iter().chain(special::LISTED).map(|name| (*name).to_owned()).collect();

    let there = functions(&suite());

    let missing: Vec<&String> = there.difference(&listed).collect();
    let stale: Vec<&String> = listed.difference(&there).collect();
    assert!(missing.is_empty() && stale.is_empty(), "missing: {missing:?}, stale: {stale:?}");
    assert!(there.len() >= 233, "only {} functions were found", there.len());
}

/// Where the source of the suite is.
fn suite() -> PathBuf {
    let mut metadata = Command::new(env!("CARGO"));
    // Without a platform it would want the source of crates that only other systems need.
    metadata.args(["metadata", "--format-version", "1", "--offline", "--filter-platform", &host()]);
    let answer = metadata.current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("cargo answers");
    let answer: serde_json::Value = serde_json::from_slice(&answer.stdout).expect("cargo speaks JSON");
    let packages = answer["packages"].as_array().expect("cargo lists packages");
    let duroxide = packages.iter().find(|package| package["name"] == "duroxide").expect("duroxide is among them");
    let manifest = duroxide["manifest_path"].as_str().expect("it has a manifest");
    Path::new(manifest).with_file_name("src").join("provider_validation")
}

fn host() -> String {
    let answer = Command::new(env!("CARGO")).args(["--version", "--verbose"]).output().expect("cargo answers");
    let answer = String::from_utf8_lossy(&answer.stdout).into_owned();
    answer.lines().find_map(|line| line.strip_prefix("host: ")).expect("cargo names its host").to_owned()
}

/// Every public function of the suite, as `group::name`.
fn functions(suite: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for file in std::fs::read_dir(suite).expect("the suite's source is there") {
        let path = file.expect("a file can be read").path();
        let group = path.file_stem().and_then(|stem| stem.to_str()).expect("a file has a name").to_owned();
        let text = std::fs::read_to_string(&path).expect("a file can be read");
        let names = text.lines().filter_map(|line| line.strip_prefix("pub async fn "));
        let names = names.filter_map(|rest| rest.split(['(', '<']).next());
        found.extend(names.map(|name| format!("{group}::{name}")));
    }
    found
}
