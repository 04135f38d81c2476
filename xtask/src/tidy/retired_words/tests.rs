//! Small documents and files with retired words, and with words that only resemble them.

use super::*;
use crate::tidy::tests::{assert_one_fault, faults};

#[test]
fn a_retired_word_in_a_public_document_is_a_fault() {
    for path in ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "docs/wake.md"] {
        let text = "One.\n\nA push\nrings the consumer.\n";
        assert_one_fault(check, &[(path, text)], &format!("{path}:4"), "\"rings\"");
    }
}

#[test]
fn the_sentence_has_the_word_to_write_instead() {
    assert_one_fault(check, &[("docs/a.md", "The Herald sends.")], "docs/a.md:1", "write: broadcaster");
}

#[test]
fn every_word_of_the_table_is_found() {
    for word in RETIRED.iter().flat_map(|retired| retired.words) {
        assert_one_fault(check, &[("docs/a.md", &format!("It {word}, so it is."))], "docs/a.md:1", word);
    }
}

#[test]
fn words_that_contain_a_retired_one_pass() {
    let text = "A string, during; ahead, overhead and headers; background; outlook; a spreadsheet; planes.";

    assert_eq!(faults(check, &[("docs/a.md", text)]), [""; 0]);
}

#[test]
fn identifiers_and_paths_pass() {
    let text = "`herald`, `hub.ring(key)`, [x](decisions/0015-looks.md), crates/wake/bell.rs, head.fresh_at, \
                reveille::ring, ring_latency\n\n```\nring the bell\n```\n";

    assert_eq!(faults(check, &[("docs/a.md", text)]), [""; 0]);
}

#[test]
fn a_phrase_with_another_meaning_passes_also_over_two_lines() {
    let text = "Names are looked\nup in pg_catalog. States are told apart. A request head. Spread over partitions. \
                Queen's maintenance mode.";

    assert_eq!(faults(check, &[("docs/a.md", text)]), [""; 0]);
}

#[test]
fn a_phrase_excuses_only_its_own_word() {
    assert_one_fault(check, &[("docs/a.md", "It looks\nup, then looks again.")], "docs/a.md:2", "\"looks\"");
}

#[test]
fn records_and_internal_pages_may_use_the_old_words() {
    let text = "The bell rings.";

    let files = [("docs/decisions/0001-a.md", text), ("docs/internal/a.md", text), ("docs/glossary.md", text)];
    assert_eq!(faults(check, &files), [""; 0]);
}

#[test]
fn rustdoc_is_judged() {
    let text = "//! One.\n\n/// The `bell` is\n/// a bell.\nfn f() {}\n";

    assert_one_fault(check, &[("xtask/src/a.rs", text)], "xtask/src/a.rs:4", "\"bell\"");
}

#[test]
fn messages_are_judged() {
    let text = "fn f() {\n    warn!(\n        \"the bell of {bell}\");\n}\n";
    assert_one_fault(check, &[("xtask/src/a.rs", text)], "xtask/src/a.rs:3", "\"bell\"");

    let text = "begin\n  raise exception 'no bell here';\nend";
    assert_one_fault(check, &[("xtask/src/a.sql", text)], "xtask/src/a.sql:2", "\"bell\"");
}

#[test]
fn comments_names_and_tests_of_code_are_not_judged() {
    let text =
        "// a bell\nfn f() { g(\"bell\", \"{bell} here\") }\n#[cfg(test)]\nmod tests { const A: &str = \"a bell\"; }";

    let files = [("xtask/src/a.rs", text), ("xtask/src/a/tests.rs", "const A: &str = \"a bell\";")];
    assert_eq!(faults(check, &files), [""; 0]);
}

#[test]
fn code_outside_of_the_workspace_is_not_judged() {
    assert_eq!(faults(check, &[("fuzz/src/a.rs", "//! The bell.\n")]), [""; 0]);
}
