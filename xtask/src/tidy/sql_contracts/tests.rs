//! Made-up crates with SQL files, in and out of order.

use super::*;
use crate::tidy::tests::{assert_one_fault, faults};

const QUERY: &str = "-- Claim one job of queue $1.\n-- locks: the claimed row\nselect 1 from job\n";

/// A crate whose `src/lib.rs` has these strings, and one SQL file.
fn one<'a>(path: &'a str, text: &'a str, rust: &'a str) -> [(&'a str, &'a str); 3] {
    [("a/Cargo.toml", ""), ("a/src/lib.rs", rust), (path, text)]
}

#[test]
fn a_query_with_its_contract_passes() {
    let rust = "const Q: &str = include_str!(\"../sql/jobs/claim.sql\");";

    assert_eq!(faults(check, &one("a/sql/jobs/claim.sql", QUERY, rust)), [""; 0]);
    assert_eq!(faults(check, &one("a/sql/claim.sql", QUERY, "sql(\"claim.sql\")")), [""; 0]);
}

#[test]
fn a_query_without_a_first_sentence_is_a_fault() {
    let bare = "-- locks: the claimed row\nselect 1\n";

    assert_one_fault(check, &one("a/sql/q.sql", bare, "\"q.sql\""), "a/sql/q.sql:1", "does not open with a comment");
}

#[test]
fn a_query_without_a_locks_line_is_a_fault() {
    let silent = "-- Claim one job.\nselect 1\n-- locks: too late\n";

    assert_one_fault(check, &one("a/sql/q.sql", silent, "\"q.sql\""), "a/sql/q.sql:1", "what it locks");
}

#[test]
fn a_locks_line_that_says_nothing_is_a_fault() {
    let empty = "-- Claim one job.\n-- locks:\nselect 1\n";

    assert_one_fault(check, &one("a/sql/q.sql", empty, "\"q.sql\""), "a/sql/q.sql:1", "what it locks");
}

#[test]
fn a_function_needs_a_sentence_but_no_locks() {
    let function = "-- Push from SQL.\ncreate function push() returns void\n";

    assert_eq!(faults(check, &one("a/sql/functions/push.sql", function, "\"push.sql\"")), [""; 0]);
    let files = one("a/sql/functions/push.sql", "create function push()", "\"push.sql\"");
    assert_one_fault(check, &files, "a/sql/functions/push.sql:1", "does not open with a comment");
}

#[test]
fn a_dump_of_a_schema_needs_a_sentence_and_a_test_that_compares_it() {
    let dump = ("a/sql/schema.sql", "-- The whole schema.\ncreate table job ();\n");
    let test = ("a/tests/schema.rs", "\"/sql/schema.sql\"");

    assert_eq!(faults(check, &[("a/Cargo.toml", ""), test, dump]), [""; 0]);
    let files = [("a/Cargo.toml", ""), ("a/src/lib.rs", test.1), dump];
    assert_one_fault(check, &files, "a/sql/schema.sql:1", "no Rust file");
}

#[test]
fn sql_outside_of_sql_directories_is_left_alone() {
    assert_eq!(faults(check, &[("docs/example.sql", "SELECT 1")]), [""; 0]);
}

#[test]
fn migrations_are_numbered_per_directory() {
    let rust = "\"0001_first.sql\" \"0002_second_step.sql\" \"0001_other.sql\"";
    let files = [
        ("a/Cargo.toml", ""),
        ("a/src/lib.rs", rust),
        ("a/sql/migrations/0001_first.sql", QUERY),
        ("a/sql/migrations/0002_second_step.sql", QUERY),
        ("a/sql/jobs/migrations/0001_other.sql", QUERY),
    ];

    assert_eq!(faults(check, &files), [""; 0]);
}

#[test]
fn a_migration_without_a_number_is_a_fault() {
    let files = one("a/sql/migrations/first.sql", QUERY, "\"first.sql\"");

    assert_one_fault(check, &files, "a/sql/migrations/first.sql:1", "NNNN_words.sql");
}

#[test]
fn a_migration_without_a_locks_line_is_a_fault() {
    let files = one("a/sql/migrations/0001_a.sql", "-- Make jobs.\ncreate table a ();", "\"0001_a.sql\"");

    assert_one_fault(check, &files, "a/sql/migrations/0001_a.sql:1", "what it locks");
}

#[test]
fn a_gap_between_migrations_is_a_fault() {
    let [manifest, _, first] = one("a/sql/migrations/0008_a.sql", QUERY, "");
    let rust = ("a/src/lib.rs", "\"0008_a.sql\" \"0010_b.sql\"");
    let files = [manifest, rust, first, ("a/sql/migrations/0010_b.sql", QUERY)];

    assert_one_fault(check, &files, "a/sql/migrations/0010_b.sql:1", "no 0009");
}

#[test]
fn two_migrations_with_one_number_are_a_fault() {
    let [manifest, _, first] = one("a/sql/migrations/0001_a.sql", QUERY, "");
    let rust = ("a/src/lib.rs", "\"0001_a.sql\" \"0001_b.sql\"");
    let files = [manifest, rust, first, ("a/sql/migrations/0001_b.sql", QUERY)];

    assert_one_fault(check, &files, "a/sql/migrations/0001_b.sql:1", "taken");
}

#[test]
fn a_file_that_nobody_names_is_a_fault() {
    assert_one_fault(check, &one("a/sql/q.sql", QUERY, "// \"q.sql\""), "a/sql/q.sql:1", "no Rust file");
    assert_one_fault(check, &one("a/sql/q.sql", QUERY, "\"xq.sql\""), "a/sql/q.sql:1", "no Rust file");
}

#[test]
fn a_file_of_another_crate_cannot_be_named() {
    let files = [("a/Cargo.toml", ""), ("b/Cargo.toml", ""), ("b/src/lib.rs", "\"q.sql\""), ("a/sql/q.sql", QUERY)];

    assert_one_fault(check, &files, "a/sql/q.sql:1", "no Rust file");
}

#[test]
fn a_file_named_in_two_places_is_a_fault() {
    let [manifest, lib, file] = one("a/sql/q.sql", QUERY, "\"q.sql\"");
    let files = [manifest, lib, ("a/src/b.rs", "\"../sql/q.sql\""), file];

    assert_one_fault(check, &files, "a/sql/q.sql:1", "a/src/b.rs and a/src/lib.rs");
}

#[test]
fn a_test_may_name_it_too() {
    let [manifest, lib, file] = one("a/sql/q.sql", QUERY, "\"q.sql\"");
    let files = [manifest, lib, ("a/tests/it/plans.rs", "\"q.sql\""), file];

    assert_eq!(faults(check, &files), [""; 0]);
}

#[test]
fn files_of_the_same_name_are_told_apart_by_their_directories() {
    let files = [
        ("a/Cargo.toml", ""),
        ("a/src/jobs.rs", "include_str!(\"../sql/jobs/claim.sql\")"),
        ("a/src/messages.rs", "include_str!(\"../sql/messages/claim.sql\")"),
        ("a/sql/jobs/claim.sql", QUERY),
        ("a/sql/messages/claim.sql", QUERY),
    ];

    assert_eq!(faults(check, &files), [""; 0]);
}

#[test]
fn a_keyword_in_capitals_is_a_fault_in_code_only() {
    let loud = "-- Say it.\n-- locks: none\nSELECT 1\n";
    let quiet = "-- SELECT is fine here.\n-- locks: none\nselect 'FROM', \"WHERE\"\n";

    assert_one_fault(check, &one("a/sql/q.sql", loud, "\"q.sql\""), "a/sql/q.sql:3", "writes SELECT");
    assert_eq!(faults(check, &one("a/sql/q.sql", quiet, "\"q.sql\"")), [""; 0]);
}
