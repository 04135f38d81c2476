//! Finds the Rust file that uses an SQL file, by the strings that name it.
//!
//! A string names an SQL file when it is the end of its path: `"../../sql/jobs/claim.sql"`,
//! `"jobs/claim.sql"` and `"claim.sql"` all name `sql/jobs/claim.sql`. Comments name nothing.

use std::path::Path;

use crate::reading::rust;
use crate::tidy::Fault;
use crate::tree::Tree;

/// A Rust file and the SQL paths in its strings, without leading dots.
struct Source<'a> {
    path: &'a str,
    named: Vec<String>,
}

/// Who uses an SQL file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Users {
    /// What is beside it: the crate's source, or tests if it lies among them.
    Beside,
    /// Tests, wherever it lies.
    Tests,
}

pub(super) fn judge<'a>(tree: &Tree, files: impl Iterator<Item = (&'a str, Users)>) -> Vec<Fault> {
    let sources: Vec<Source<'_>> = tree
        .with_extension("rs")
        .map(|file| Source { path: &file.path, named: names_in(&rust::layers(&file.text).quoted) })
        .filter(|source| !source.named.is_empty())
        .collect();
    files.filter_map(|(file, users)| judge_uses(tree, &sources, file, users)).collect()
}

fn judge_uses(tree: &Tree, sources: &[Source<'_>], file: &str, users: Users) -> Option<Fault> {
    let users: Vec<&str> = sources
        .iter()
        .filter(|source| {
            is_beside(tree, source.path, file, users) && source.named.iter().any(|name| is_end_of(file, name))
        })
        .map(|source| source.path)
        .collect();
    let sentence = match users[..] {
        [_] => return None,
        [] => "is named by no Rust file of its crate, so it is dead or hidden; use it or delete it".to_owned(),
        [..] => format!(
            "is named by {}, so its contract has several masters; let one of them own it and the others call that",
            users.join(" and ")
        ),
    };
    Some(Fault::new(file, 1, sentence))
}

/// Same crate; tests may name what the crate owns, but only tests own what lies among tests.
fn is_beside(tree: &Tree, source: &str, file: &str, users: Users) -> bool {
    let home = crate_of(tree, file);
    let among_tests = |path: &str| path[home.len()..].split('/').any(|component| component == "tests");
    let by_tests = users == Users::Tests || among_tests(file);
    crate_of(tree, source) == home && among_tests(source) == by_tests
}

/// The nearest directory above that has a manifest, with its slash; the root when none has.
fn crate_of<'a>(tree: &Tree, path: &'a str) -> &'a str {
    let mut above = path.rmatch_indices('/').map(|(at, _)| &path[..=at]);
    above.find(|directory| tree.file(&format!("{directory}Cargo.toml")).is_some()).unwrap_or_default()
}

fn names_in(quoted: &str) -> Vec<String> {
    let in_path = |letter: char| letter.is_ascii_alphanumeric() || "._-/".contains(letter);
    let words = quoted
        .split(|letter| !in_path(letter))
        .filter(|word| Path::new(word).extension().is_some_and(|found| found == "sql"));
    words.map(|word| word.trim_start_matches(['.', '/']).to_owned()).collect()
}

fn is_end_of(file: &str, name: &str) -> bool {
    file.strip_suffix(name).is_some_and(|before| before.is_empty() || before.ends_with('/'))
}
