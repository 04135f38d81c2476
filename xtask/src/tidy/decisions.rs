//! A decision is numbered, and states its context, its alternatives and how it could be wrong.

use super::Fault;
use super::numbering::{self, Numbered};
use crate::reading::markdown::Parts;
use crate::tree::{File, Tree};

const DIRECTORY: &str = "docs/decisions/";
const HEADINGS: &[&str] = &["Context", "Decision", "Consequences", "Alternatives", "How we would know we are wrong"];

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut numbered = Vec::new();
    for file in tree.files().filter(|file| file.path.starts_with(DIRECTORY)) {
        match number(&file.path) {
            Some(number) => numbered.push(Numbered { number, path: &file.path }),
            None => faults.push(Fault::new(&*file.path, 1, BADLY_NAMED)),
        }
        faults.extend(missing_headings(file));
    }
    faults.extend(numbering::judge(&numbered, 1));
    faults
}

const BADLY_NAMED: &str = "is not named NNNN-title.md in small letters, so it has no place in the order of decisions; \
                           rename it with the next number";

fn number(path: &str) -> Option<u32> {
    numbering::number_of(path.strip_prefix(DIRECTORY)?.strip_suffix(".md")?, '-')
}

fn missing_headings(file: &File) -> Vec<Fault> {
    let present = Parts::of(&file.text).headings;
    let missing = HEADINGS.iter().filter(|wanted| !present.iter().any(|found| found.text.eq_ignore_ascii_case(wanted)));
    missing
        .map(|wanted| {
            let sentence = format!("has no heading \"{wanted}\", so a reader cannot weigh the decision again; add it");
            Fault::new(&*file.path, 1, sentence)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::{assert_one_fault, faults};

    const WHOLE: &str = "# T\n## Context\n## Decision\n## Consequences\n## Alternatives\n\
                         ## How we would know we are wrong\n";

    #[test]
    fn whole_decisions_in_order_pass() {
        let files = [("docs/decisions/0001-wake.md", WHOLE), ("docs/decisions/0002-sql-in-files.md", WHOLE)];

        assert_eq!(faults(check, &files), [""; 0]);
    }

    #[test]
    fn a_decision_without_a_number_is_a_fault() {
        assert_one_fault(check, &[("docs/decisions/wake.md", WHOLE)], "docs/decisions/wake.md:1", "NNNN-title.md");
    }

    #[test]
    fn a_gap_in_the_numbers_is_a_fault() {
        let files = [("docs/decisions/0001-a.md", WHOLE), ("docs/decisions/0003-b.md", WHOLE)];

        assert_one_fault(check, &files, "docs/decisions/0003-b.md:1", "0002");
    }

    #[test]
    fn a_number_given_twice_is_a_fault() {
        let files = [("docs/decisions/0001-a.md", WHOLE), ("docs/decisions/0001-b.md", WHOLE)];

        assert_one_fault(check, &files, "docs/decisions/0001-b.md:1", "0001");
    }

    #[test]
    fn each_heading_is_needed() {
        for heading in HEADINGS {
            let text = WHOLE.replace(&format!("## {heading}\n"), "");
            assert_one_fault(check, &[("docs/decisions/0001-a.md", &text)], "docs/decisions/0001-a.md:1", heading);
        }
    }
}
