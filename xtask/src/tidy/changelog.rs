//! The change log exists and has a place for the next entry.

use super::Fault;
use crate::reading::markdown::Parts;
use crate::tree::Tree;

const PATH: &str = "CHANGELOG.md";

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let Some(file) = tree.file(PATH) else {
        let sentence = "is missing, so users cannot see what changed; create it with a heading \"## Unreleased\"";
        return vec![Fault::new(PATH, 1, sentence)];
    };
    if Parts::of(&file.text).headings.iter().any(|heading| opens_a_release(&heading.text)) {
        return Vec::new();
    }
    let sentence = "has no heading of a release, so an entry has no place to go; add \"## Unreleased\"";
    vec![Fault::new(PATH, 1, sentence)]
}

/// `Unreleased`, `[Unreleased]`, `0.1.0`, `v0.1.0`, `[0.1.0] - 2026-01-31`.
fn opens_a_release(heading: &str) -> bool {
    let first = heading.split_whitespace().next().unwrap_or_default();
    let name = first.trim_matches(['[', ']']);
    let numbers: Vec<_> = name.trim_start_matches('v').split('.').collect();
    let is_version = numbers.len() >= 2 && numbers[..2].iter().all(|part| part.parse::<u32>().is_ok());
    name.eq_ignore_ascii_case("unreleased") || is_version
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::{assert_one_fault, faults};

    #[test]
    fn an_unreleased_or_a_version_heading_will_do() {
        for heading in ["## Unreleased", "## [Unreleased]", "## 0.1.0", "## [0.1.0-rc.1] - 2026-01-31"] {
            assert_eq!(faults(check, &[(PATH, heading)]), [""; 0], "{heading}");
        }
    }

    #[test]
    fn a_missing_change_log_is_a_fault() {
        assert_one_fault(check, &[("README.md", "")], "CHANGELOG.md:1", "missing");
    }

    #[test]
    fn a_change_log_without_a_release_is_a_fault() {
        assert_one_fault(check, &[(PATH, "# Changes\n\n0.1.0\n")], "CHANGELOG.md:1", "no heading of a release");
    }
}
