//! Tests wait for events, not for time.
//!
//! Refuses `sleep(` and `sleep_until(` in tests. Files named after faults may sleep, for an outage
//! lasts as long as it lasts, and so may a line that says why: `// tidy: sleep because …`, beside
//! it or above it.

use super::Fault;
use crate::reading::attributes::lines_for_tests;
use crate::reading::layers::Layers;
use crate::reading::rust;
use crate::reading::words::{find_word, line_of, parts_of_name};
use crate::tree::{File, Tree};

const FAULT_WORDS: &[&str] = &["fault", "outage", "chaos", "crash"];
const MARK: &str = "tidy: sleep";

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    tree.with_extension("rs").filter(|file| !is_about_faults(&file.path)).flat_map(judge).collect()
}

fn is_about_faults(path: &str) -> bool {
    parts_of_name(path).any(|part| FAULT_WORDS.iter().any(|word| part.starts_with(word)))
}

fn judge(file: &File) -> Vec<Fault> {
    let layers = rust::layers(&file.text);
    let whole = is_test_file(&file.path);
    let for_tests = lines_for_tests(&file.text);
    let found = ["sleep(", "sleep_until("].into_iter().flat_map(|call| find_word(&layers.code, call));
    let mut lines: Vec<usize> = found.map(|at| line_of(&layers.code, at)).collect();
    lines.sort_unstable();
    lines.dedup();
    lines
        .into_iter()
        .filter(|line| whole || for_tests.iter().any(|range| range.contains(line)))
        .filter(|&line| !is_excused(&layers, line))
        .map(|line| Fault::new(&*file.path, line, SENTENCE))
        .collect()
}

const SENTENCE: &str = "sleeps in a test, which is slow when it works and fails on a busy machine; wait for the event, \
                        pause the clock, or end the line with `// tidy: sleep because` and the reason";

fn is_test_file(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.split('/').any(|component| component == "tests")
}

/// Whether this line, or a comment that has the line above for itself, carries the mark with a
/// reason.
fn is_excused(layers: &Layers, line: usize) -> bool {
    let nth = |layer: &str, line: usize| layer.lines().nth(line - 1).unwrap_or_default().trim().to_owned();
    let has_line_above = line > 1 && nth(&layers.code, line - 1).is_empty() && nth(&layers.quoted, line - 1).is_empty();
    has_reason(&nth(&layers.comments, line)) || (has_line_above && has_reason(&nth(&layers.comments, line - 1)))
}

fn has_reason(comment: &str) -> bool {
    let rest = comment.split_once(MARK).and_then(|(_, rest)| rest.trim_start().strip_prefix("because"));
    rest.is_some_and(|reason| reason.split_whitespace().count() > 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::{assert_one_fault, faults};

    const SLEEP: &str = "fn f() {\n    tokio::time::sleep(SECOND).await;\n}\n";

    #[test]
    fn a_sleep_in_an_integration_test_is_a_fault() {
        assert_one_fault(check, &[("crates/a/tests/it/push.rs", SLEEP)], "crates/a/tests/it/push.rs:2", "sleeps");
    }

    #[test]
    fn a_sleep_in_a_test_module_is_a_fault() {
        let text = format!("fn g() {{ sleep(1) }}\n#[cfg(test)]\nmod tests {{\n{SLEEP}}}\n");

        assert_one_fault(check, &[("src/a.rs", &text)], "src/a.rs:5", "sleeps");
        assert_one_fault(check, &[("src/a/tests.rs", SLEEP)], "src/a/tests.rs:2", "sleeps");
    }

    #[test]
    fn a_sleep_until_is_a_fault_too() {
        assert_one_fault(check, &[("tests/a.rs", "f(sleep_until(then))")], "tests/a.rs:1", "sleeps");
    }

    #[test]
    fn code_that_is_no_test_may_sleep() {
        assert_eq!(faults(check, &[("src/a.rs", SLEEP)]), [""; 0]);
    }

    #[test]
    fn a_file_named_after_a_fault_may_sleep_and_one_named_after_defaults_may_not() {
        assert_eq!(faults(check, &[("tests/outage.rs", SLEEP), ("tests/faults/cut.rs", SLEEP)]), [""; 0]);
        assert_one_fault(check, &[("tests/defaults.rs", SLEEP)], "tests/defaults.rs:2", "sleeps");
    }

    #[test]
    fn a_sleep_with_a_reason_passes() {
        let beside = "sleep(1); // tidy: sleep because the kernel reports nothing\n";
        let above = "// tidy: sleep because the kernel reports nothing\nsleep(1);\n";

        assert_eq!(faults(check, &[("tests/a.rs", beside), ("tests/b.rs", above)]), [""; 0]);
    }

    #[test]
    fn a_mark_without_a_reason_excuses_nothing() {
        assert_one_fault(check, &[("tests/a.rs", "sleep(1); // tidy: sleep because")], "tests/a.rs:1", "sleeps");
        assert_one_fault(check, &[("tests/a.rs", "sleep(1); // tidy: sleep")], "tests/a.rs:1", "sleeps");
    }

    #[test]
    fn a_reason_excuses_its_own_line_only() {
        let text = "sleep(1); // tidy: sleep because the kernel reports nothing\nsleep(2);\n";

        assert_one_fault(check, &[("tests/a.rs", text)], "tests/a.rs:2", "sleeps");
    }

    #[test]
    fn words_and_other_names_are_no_sleep() {
        let text = "// sleep(1)\nquery(\"select pg_sleep(1)\"); oversleep(1);";

        assert_eq!(faults(check, &[("tests/a.rs", text)]), [""; 0]);
    }
}
