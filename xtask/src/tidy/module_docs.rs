//! Every source file opens with a sentence about itself.

use super::Fault;
use crate::tree::{File, Tree};

/// Below this, "Listener module." would count as a sentence.
const FEWEST_WORDS: usize = 3;

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    tree.with_extension("rs").filter(|file| is_source(&file.path)).filter_map(judge).collect()
}

fn is_source(path: &str) -> bool {
    path.split('/').any(|component| component == "src" || component == "tests")
}

fn judge(file: &File) -> Option<Fault> {
    let mut lines = file.text.lines().enumerate().skip_while(|(_, line)| line.trim().is_empty());
    let (first, opening) = lines.next().unwrap_or((0, ""));
    if opening.starts_with("#![doc = include_str!") {
        return None;
    }
    if !opening.starts_with("//!") {
        let sentence = "does not open with `//!`, so a reader must guess what it is for; say first what it owns, \
                        promises and refuses";
        return Some(Fault::new(&*file.path, first + 1, sentence));
    }
    let rest = file.text.lines().skip(first).map_while(|line| line.strip_prefix("//!")).map(str::trim);
    let paragraph: Vec<&str> = rest.take_while(|line| !line.is_empty()).collect();
    if is_sentence(&paragraph.join(" ")) {
        return None;
    }
    let sentence = "opens with words that make no sentence and so explain nothing; say in a full sentence what the file \
                    owns, promises and refuses";
    Some(Fault::new(&*file.path, first + 1, sentence))
}

fn is_sentence(paragraph: &str) -> bool {
    let end = paragraph.trim_end_matches([')', '`', '*', '_', '"']);
    end.ends_with(['.', ':', '?', '!']) && paragraph.split_whitespace().count() >= FEWEST_WORDS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::{assert_one_fault, faults};

    #[test]
    fn a_file_that_opens_with_a_sentence_passes() {
        let text = "//! Turns notifications\n//! into wake-ups.\n//!\n//! Next: more\nfn f() {}\n";

        assert_eq!(faults(check, &[("crates/a/src/lib.rs", text), ("crates/a/tests/it/main.rs", text)]), [""; 0]);
    }

    #[test]
    fn documentation_kept_in_another_file_passes() {
        assert_eq!(faults(check, &[("src/lib.rs", "#![doc = include_str!(\"../README.md\")]\n")]), [""; 0]);
    }

    #[test]
    fn a_file_without_documentation_is_a_fault() {
        assert_one_fault(check, &[("a/src/bin/b.rs", "\nfn main() {}\n")], "a/src/bin/b.rs:2", "does not open with");
        assert_one_fault(check, &[("a/tests/b.rs", "")], "a/tests/b.rs:1", "does not open with");
    }

    #[test]
    fn a_label_is_no_sentence() {
        assert_one_fault(check, &[("src/a.rs", "//! Listener module.\n")], "src/a.rs:1", "no sentence");
        assert_one_fault(check, &[("src/a.rs", "//! the listener and more\n")], "src/a.rs:1", "no sentence");
    }

    #[test]
    fn files_outside_of_sources_and_tests_need_none() {
        assert_eq!(faults(check, &[("crates/a/build.rs", "fn main() {}\n")]), [""; 0]);
    }
}
