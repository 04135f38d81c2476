//! Nothing depends on the machine or the package mirror it was written on.

use super::Fault;
use crate::tree::{File, Tree};

/// Written in halves, so that this list does not find itself.
const HOSTS: &[&str] = &[
    concat!("registry", ".npmjs"),
    concat!("static", ".crates"),
    concat!("index", ".crates"),
    concat!("files", ".pythonhosted"),
    concat!("deb", ".debian"),
];
const PATHS: &[&str] = &[concat!("/wo", "rk/"), concat!("/fa", "rm/"), concat!("/root", "/.cargo")];

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    tree.files().flat_map(judge).collect()
}

fn judge(file: &File) -> Vec<Fault> {
    let lines = file.text.lines().enumerate();
    lines.filter_map(|(n, line)| found_in(line).map(|what| Fault::new(&*file.path, n + 1, sentence(what)))).collect()
}

fn sentence(what: &str) -> String {
    format!("names {what}, which exists on one machine or mirror only; take it from an option, or leave it out")
}

fn found_in(line: &str) -> Option<&'static str> {
    let host = HOSTS.iter().find(|host| line.contains(**host));
    let path = || PATHS.iter().find(|path| line.match_indices(**path).any(|(at, _)| opens_a_path(&line[..at])));
    host.or_else(path).copied()
}

/// Whether a path that begins after this text is absolute, not the middle of a longer one.
fn opens_a_path(before: &str) -> bool {
    !before.ends_with(|letter: char| letter.is_alphanumeric() || "._-*>})]".contains(letter))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::{assert_one_fault, faults};

    #[test]
    fn a_registry_host_is_a_fault_in_any_file() {
        for host in HOSTS {
            let text = format!("\nurl = \"https://{host}.example/x\"\n");
            assert_one_fault(check, &[("scripts/fetch.sh", &text)], "scripts/fetch.sh:2", host);
        }
    }

    #[test]
    fn a_path_of_this_machine_is_a_fault() {
        for path in PATHS {
            assert_one_fault(check, &[("README.md", &format!("see `{path}x`"))], "README.md:1", path);
        }
    }

    #[test]
    fn a_relative_path_with_the_same_word_passes() {
        let text = format!("src{path}claim.rs and ..{path}x, https://crates.io/", path = PATHS[0]);

        assert_eq!(faults(check, &[("README.md", &text)]), [""; 0]);
    }
}
