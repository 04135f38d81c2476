//! Made-up names, meaningful and empty ones.

use super::*;
use crate::tidy::tests::{assert_one_fault, faults};

#[test]
fn telling_names_pass() {
    let text = "struct Database; struct MetadataRow; enum Informant { A } trait Commons {} mod database {}";

    assert_eq!(faults(check, &[("crates/reveille/src/database/metadata.rs", text)]), [""; 0]);
}

#[test]
fn an_empty_word_in_a_file_name_is_a_fault() {
    assert_one_fault(check, &[("src/test_utils.rs", "")], "src/test_utils.rs:1", "\"utils\"");
}

#[test]
fn an_empty_word_in_a_directory_is_a_fault() {
    assert_one_fault(check, &[("tests/data/one.json", "")], "tests/data/one.json:1", "\"data\"");
}

#[test]
fn a_mod_file_is_a_fault() {
    assert_one_fault(check, &[("src/jobs/mod.rs", "")], "src/jobs/mod.rs:1", "mod.rs");
}

#[test]
fn a_type_that_ends_or_begins_with_an_empty_word_is_a_fault() {
    assert_one_fault(check, &[("a.rs", "\npub struct JobManager;")], "a.rs:2", "JobManager");
    assert_one_fault(check, &[("a.rs", "enum DataKind {}")], "a.rs:1", "DataKind");
    assert_one_fault(check, &[("a.rs", "trait HTTPInfo {}")], "a.rs:1", "HTTPInfo");
}

#[test]
fn an_inline_module_with_an_empty_name_is_a_fault() {
    assert_one_fault(check, &[("a.rs", "mod helpers { fn f() {} }")], "a.rs:1", "the module helpers");
}

#[test]
fn a_module_in_its_own_file_is_judged_once() {
    let files = [("src/a.rs", "mod common;"), ("src/a/common.rs", "")];

    assert_one_fault(check, &files, "src/a/common.rs:1", "\"common\"");
}

#[test]
fn a_type_that_is_only_spoken_of_passes() {
    let text = "// a struct JobManager would be wrong\nconst WHY: &str = \"struct JobManager\";";

    assert_eq!(faults(check, &[("a.rs", text)]), [""; 0]);
}
