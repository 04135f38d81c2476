//! Made-up documents that name paths, right and wrong ones.

use super::*;
use crate::tidy::tests::{assert_one_fault, faults};

/// A tree with one crate, and one document with this text.
fn tree<'a>(document: &'a str, text: &'a str) -> [(&'a str, &'a str); 3] {
    [(document, text), ("crates/wake/src/hub.rs", ""), ("docs/operate.md", "")]
}

#[test]
fn paths_that_exist_pass() {
    let text = "`crates/wake/src/hub.rs:12`, `crates/wake/`, [operate](docs/operate.md#tune \"title\")\n\
                [o]: docs/operate.md";

    assert_eq!(faults(check, &tree("README.md", text)), [""; 0]);
}

#[test]
fn a_path_may_be_written_from_the_document() {
    let text = "`src/hub.rs`, [operate](../../docs/operate.md)";

    assert_eq!(faults(check, &tree("crates/wake/README.md", text)), [""; 0]);
}

#[test]
fn a_path_in_backticks_that_is_missing_is_a_fault() {
    assert_one_fault(check, &tree("README.md", "\nsee `crates/wake/src/gone.rs`"), "README.md:2", "src/gone.rs");
    assert_one_fault(check, &tree("docs/a.md", "see `sql/queries/`"), "docs/a.md:1", "sql/queries/");
}

#[test]
fn a_link_that_leads_nowhere_is_a_fault() {
    assert_one_fault(check, &tree("README.md", "[x](guide.md)"), "README.md:1", "guide.md");
    assert_one_fault(check, &tree("README.md", "[x]: other/place.txt"), "README.md:1", "other/place.txt");
}

#[test]
fn a_link_is_followed_from_its_document_as_a_reader_does() {
    assert_one_fault(check, &tree("docs/a.md", "[x](docs/operate.md)"), "docs/a.md:1", "docs/operate.md");
}

#[test]
fn what_only_looks_like_a_path_passes() {
    let text = "`/api/v1/push`, `https://x.example/docs/a.md`, `@scope/docs`, `crates/*/x.rs`, `docs/<name>.md`, \
                `~/docs/a.md`, `$HOME/src`, `docs/decisions/NNNN-title.md`, `docs/a b.md`, `crates/wake::hub`, \
                `../shared/DESIGN.md`, `and/or`, `main.rs`, `{docs,src}/a.md`, `docs/…`, [x](#top), [y](mailto:a@b.c)";

    assert_eq!(faults(check, &tree("README.md", text)), [""; 0]);
}

#[test]
fn fenced_code_and_other_documents_are_left_alone() {
    assert_eq!(faults(check, &tree("README.md", "```\n`src/main.rs`\n```\n")), [""; 0]);
    assert_eq!(faults(check, &tree("bench/results/a.md", "`src/main.rs`")), [""; 0]);
}
