//! How a check is tested, and the table as a whole.

use super::*;

/// Runs one check on a made-up tree and returns each fault as `path:line: sentence`.
pub(super) fn faults(check: fn(&Tree) -> Vec<Fault>, files: &[(&str, &str)]) -> Vec<String> {
    let found = check(&Tree::of(files)).into_iter();
    found.map(|Fault { path, line, sentence }| format!("{path}:{line}: {sentence}")).collect()
}

/// Asserts that a check finds exactly one fault, at this place and with these words in its
/// sentence.
#[track_caller]
pub(super) fn assert_one_fault(check: fn(&Tree) -> Vec<Fault>, files: &[(&str, &str)], place: &str, words: &str) {
    let found = faults(check, files);
    assert_eq!(found.len(), 1, "expected one fault, found {found:#?}");
    assert!(found[0].starts_with(&format!("{place}: ")), "expected it at {place}: {found:#?}");
    assert!(found[0].contains(words), "expected the words {words:?}: {found:#?}");
}

#[test]
fn a_tree_that_keeps_every_rule_is_clean() {
    let tree =
        Tree::of(&[("CHANGELOG.md", "# Changes\n\n## Unreleased\n"), ("src/lib.rs", "//! Says one whole sentence.\n")]);

    let report = run(&tree);

    assert!(report.is_clean(), "{report}");
    assert_eq!(report.to_string(), "tidy: no fault in 2 files, 14 checks\n");
}

#[test]
fn faults_of_all_checks_are_printed_with_their_place_and_check() {
    let tree = Tree::of(&[("CHANGELOG.md", "## Unreleased\n"), ("src/mod.rs", "fn f() {}\n")]);

    let printed = run(&tree).to_string();

    let lines: Vec<_> = printed.lines().collect();
    assert_eq!(lines.len(), 3, "{printed}");
    assert!(lines[0].starts_with("src/mod.rs:1: ") && lines[0].ends_with("[module-docs]"), "{printed}");
    assert!(lines[1].starts_with("src/mod.rs:1: ") && lines[1].ends_with("[path-words]"), "{printed}");
    assert_eq!(lines[2], "tidy: 2 faults in 2 files, 14 checks");
}

#[test]
fn every_check_is_listed_once_with_its_reason() {
    let mut names: Vec<_> = CHECKS.iter().map(|check| check.name).collect();
    names.sort_unstable();
    names.dedup();

    assert_eq!(names.len(), CHECKS.len());
    assert_eq!(list().lines().count(), CHECKS.len());
    assert!(list().contains("changelog          users read"));
}
