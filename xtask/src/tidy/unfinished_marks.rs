//! What is merged is finished, and every exception to a lint has a reason.
//!
//! Leaves `unwrap` to clippy, which knows types. Comments are searched in Rust and SQL, code in
//! Rust.

use super::Fault;
use crate::reading::attributes::Attribute;
use crate::reading::words::{find_word, line_of};
use crate::reading::{rust, sql};
use crate::tree::Tree;

const FIX: &str = concat!("FIX", "ME");
const LATER: &str = concat!("TO", "DO");

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for file in tree.with_extension("rs") {
        let layers = rust::layers(&file.text);
        let found = judge_comments(&layers.comments).chain(judge_calls(&layers.code));
        let found =
            found.chain(Attribute::all_in(&file.text).into_iter().flat_map(|attribute| judge_attribute(&attribute)));
        faults.extend(found.map(|(line, sentence)| Fault::new(&*file.path, line, sentence)));
    }
    for file in tree.with_extension("sql") {
        let comments = sql::layers(&file.text).comments;
        faults.extend(judge_comments(&comments).map(|(line, sentence)| Fault::new(&*file.path, line, sentence)));
    }
    faults
}

fn judge_comments(comments: &str) -> impl Iterator<Item = (usize, &'static str)> {
    let numbered = || comments.lines().enumerate().map(|(n, line)| (n + 1, line));
    let fixes = numbered().filter(|(_, line)| find_word(line, FIX).next().is_some()).map(|(n, _)| {
        (n, "says that something is known to be broken; fix it, or write a test that shows it and an issue")
    });
    let laters = numbered().filter(|(_, line)| find_word(line, LATER).any(|at| is_bare(&line[at..]))).map(|(n, _)| {
        (n, "puts work off without a place where it is kept; do it, or name the issue: \"(#12)\" or its address")
    });
    fixes.chain(laters)
}

fn is_bare(mark: &str) -> bool {
    let numbered =
        mark.split_once("(#").is_some_and(|(_, rest)| rest.starts_with(|digit: char| digit.is_ascii_digit()));
    !numbered && !mark.contains("https://")
}

fn judge_calls(code: &str) -> impl Iterator<Item = (usize, &'static str)> {
    let found = ["todo!", "unimplemented!"].into_iter().flat_map(|call| find_word(code, call));
    found.map(|at| (line_of(code, at), "panics where work is missing; write it, or leave the call out until it exists"))
}

fn judge_attribute(attribute: &Attribute) -> Vec<(usize, &'static str)> {
    let mut sentences = Vec::new();
    if attribute.is("ignore") {
        sentences.push("ignores a test, so the rule it tests rots; make it pass, or delete it with its rule");
    }
    if attribute.is("allow") {
        sentences
            .push("allows a lint for ever, needed or not; write #[expect(…, reason = \"…\")], which ends by itself");
    }
    if attribute.is("expect") && !attribute.says("reason") {
        sentences.push("expects a lint without saying why; add reason = \"…\"");
    }
    sentences.into_iter().map(|sentence| (attribute.line, sentence)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::{assert_one_fault, faults};

    #[test]
    fn finished_code_passes() {
        let attribute = "#[expect(\n    clippy::cast,\n    reason = \"bounded above\"\n)]\n";
        let text = format!("{attribute}fn f(x: Option<u8>) {{ x.expect(\"set\"); }}");

        assert_eq!(faults(check, &[("a.rs", &text)]), [""; 0]);
    }

    #[test]
    fn a_mark_to_fix_is_a_fault() {
        assert_one_fault(check, &[("a.rs", &format!("\n// {FIX}: broken"))], "a.rs:2", "known to be broken");
        assert_one_fault(check, &[("a.sql", &format!("-- {FIX}: broken"))], "a.sql:1", "known to be broken");
    }

    #[test]
    fn work_put_off_needs_an_issue() {
        assert_one_fault(check, &[("a.rs", &format!("/// {LATER}: more"))], "a.rs:1", "puts work off");
        assert_eq!(faults(check, &[("a.rs", &format!("// {LATER}(#12): more"))]), [""; 0]);
    }

    #[test]
    fn a_call_that_stands_for_missing_work_is_a_fault() {
        assert_one_fault(check, &[("a.rs", "fn f() {\n    todo!()\n}")], "a.rs:2", "work is missing");
        assert_one_fault(check, &[("a.rs", "unimplemented!(\"x\")")], "a.rs:1", "work is missing");
    }

    #[test]
    fn an_ignored_test_is_a_fault() {
        assert_one_fault(check, &[("a.rs", "#[test]\n#[ignore = \"slow\"]\nfn f() {}")], "a.rs:2", "ignores a test");
        assert_one_fault(check, &[("a.rs", "#[cfg_attr(miri, ignore)]")], "a.rs:1", "ignores a test");
    }

    #[test]
    fn allowing_a_lint_is_a_fault() {
        assert_one_fault(check, &[("a.rs", "#![allow(dead_code)]")], "a.rs:1", "#[expect(");
        assert_one_fault(check, &[("a.rs", "#[cfg_attr(test, allow(dead_code))]")], "a.rs:1", "#[expect(");
    }

    #[test]
    fn expecting_a_lint_without_a_reason_is_a_fault() {
        assert_one_fault(check, &[("a.rs", "#[expect(\n    dead_code\n)]")], "a.rs:1", "without saying why");
    }

    #[test]
    fn marks_that_are_only_spoken_of_pass() {
        let text = format!("// never #[allow(x)] nor todo!()\nconst A: &str = \"{FIX} {LATER} #[ignore]\";");

        assert_eq!(faults(check, &[("a.rs", &text)]), [""; 0]);
    }
}
