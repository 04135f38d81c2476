//! Made-up files of many lines, listed and not.

use super::*;
use crate::tidy::tests::{assert_one_fault, faults};

fn lines(count: usize) -> String {
    "x\n".repeat(count)
}

#[test]
fn a_file_of_five_hundred_lines_passes() {
    assert_eq!(faults(check, &[("src/a.rs", &lines(500))]), [""; 0]);
}

#[test]
fn a_longer_rust_file_is_a_fault() {
    assert_one_fault(check, &[("src/a.rs", &lines(501))], "src/a.rs:501", "has 501 lines");
}

#[test]
fn other_files_may_be_long() {
    assert_eq!(faults(check, &[("docs/a.md", &lines(2000)), ("sql/a.sql", &lines(2000))]), [""; 0]);
}

#[test]
fn an_architecture_document_over_three_hundred_lines_is_a_fault() {
    assert_one_fault(check, &[("ARCHITECTURE.md", &lines(301))], "ARCHITECTURE.md:301", "300");
}

#[test]
fn a_listed_file_at_its_ceiling_passes() {
    let files = [(LIST, "# why\n\nsrc/a.rs 700\n"), ("src/a.rs", &*lines(650))];

    assert_eq!(faults(check, &files), [""; 0]);
}

#[test]
fn a_listed_file_that_grew_is_a_fault() {
    let files = [(LIST, "src/a.rs 700\n"), ("src/a.rs", &*lines(701))];

    assert_one_fault(check, &files, "src/a.rs:701", "has 701 lines");
}

#[test]
fn a_listed_file_that_shrank_by_more_than_a_tenth_must_be_listed_anew() {
    let files = [(LIST, "src/a.rs 700\n"), ("src/a.rs", &*lines(629))];

    assert_one_fault(check, &files, "xtask/file-length.txt:1", "write 629");
}

#[test]
fn a_listed_file_that_is_short_enough_must_leave_the_list() {
    let files = [(LIST, "src/a.rs 510\n"), ("src/a.rs", &*lines(500))];

    assert_one_fault(check, &files, "xtask/file-length.txt:1", "remove the entry");
}

#[test]
fn a_listed_file_that_is_gone_must_leave_the_list() {
    assert_one_fault(check, &[(LIST, "src/a.rs 510\n")], "xtask/file-length.txt:1", "does not exist");
}

#[test]
fn a_line_that_cannot_be_understood_is_a_fault() {
    assert_one_fault(check, &[(LIST, "src/a.rs\n")], "xtask/file-length.txt:1", "not a path and a number");
}

#[test]
fn a_file_listed_twice_is_a_fault() {
    let files = [(LIST, "src/a.rs 700\nsrc/a.rs 900\n"), ("src/a.rs", &*lines(650))];

    assert_one_fault(check, &files, "xtask/file-length.txt:2", "second time");
}
