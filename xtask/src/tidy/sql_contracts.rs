//! Every SQL file under a `sql` directory states its contract, is used in one place, and reads like
//! the others.
//!
//! A query and a migration say what they lock, for that is what the next writer must know; a
//! function says what it is for. A dump of a schema, `sql/schema.sql`, is for reading: it locks
//! nothing, and a test compares it with what is made. Which queries are hot, and so must name their
//! plan, only the plan tests know.
//!
//! Next: [`mentions`], which finds where a file is used.

mod mentions;

use super::Fault;
use super::numbering::{self, Numbered};
use crate::reading::sql;
use crate::reading::words::{find_word, line_of};
use crate::tree::{File, Tree};
use mentions::Users;

const KEYWORDS: &[&str] = &["SELECT", "INSERT", "UPDATE", "DELETE", "FROM", "WHERE"];

/// What a file is for, as its directory says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Query,
    Migration,
    Function,
    Dump,
}

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let files: Vec<(&File, Kind)> =
        tree.with_extension("sql").filter_map(|file| Some((file, kind(&file.path)?))).collect();
    let mut faults: Vec<Fault> =
        files.iter().flat_map(|&(file, kind)| judge_header(file, kind).chain(judge_keywords(file))).collect();
    let migrations: Vec<&str> =
        files.iter().filter(|(_, kind)| *kind == Kind::Migration).map(|(file, _)| file.path.as_str()).collect();
    faults.extend(judge_migration_names(&migrations));
    let users = |kind| if kind == Kind::Dump { Users::Tests } else { Users::Beside };
    faults.extend(mentions::judge(tree, files.iter().map(|&(file, kind)| (file.path.as_str(), users(kind)))));
    faults
}

/// The kind of a file below a directory called `sql`, or nothing for files elsewhere.
fn kind(path: &str) -> Option<Kind> {
    let directories: Vec<&str> = directory_of(path).split('/').skip_while(|name| *name != "sql").collect();
    match directories[..] {
        [] => None,
        ["sql"] if path.ends_with("/schema.sql") => Some(Kind::Dump),
        [..] if directories.contains(&"migrations") => Some(Kind::Migration),
        [..] if directories.contains(&"functions") => Some(Kind::Function),
        [..] => Some(Kind::Query),
    }
}

fn judge_header(file: &File, kind: Kind) -> impl Iterator<Item = Fault> {
    let mut sentences = Vec::new();
    let is_field = |line: &str| {
        line.split_once(':').is_some_and(|(name, _)| name.chars().all(|letter| letter.is_ascii_lowercase()))
    };
    if sql::header(&file.text).next().is_none_or(|line| line.is_empty() || is_field(line)) {
        sentences.push("does not open with a comment that says in a sentence what it does; add it as the first line");
    }
    let states_locks = |line: &str| line.strip_prefix("locks:").is_some_and(|what| !what.trim().is_empty());
    if !matches!(kind, Kind::Function | Kind::Dump) && !sql::header(&file.text).any(states_locks) {
        sentences
            .push("does not state what it locks, so nobody knows what it blocks; add \"-- locks: …\" to its header");
    }
    sentences.into_iter().map(|sentence| Fault::new(&*file.path, 1, sentence))
}

fn judge_keywords(file: &File) -> impl Iterator<Item = Fault> {
    let code = sql::layers(&file.text).code;
    let found = KEYWORDS.iter().flat_map(|keyword| find_word(&code, keyword).map(move |at| (at, keyword)));
    let faults = found.map(|(at, keyword)| {
        let sentence =
            format!("writes {keyword} in capitals, which reads louder than names; write it in small letters");
        Fault::new(&*file.path, line_of(&code, at), sentence)
    });
    faults.collect::<Vec<_>>().into_iter()
}

/// Each directory of migrations is numbered by itself. Its first file may have any number: older
/// ones may have been retired.
fn judge_migration_names(paths: &[&str]) -> Vec<Fault> {
    let mut faults = Vec::new();
    for directory in paths.chunk_by(|left, right| directory_of(left) == directory_of(right)) {
        let mut numbered = Vec::new();
        for &path in directory {
            let stem = path[directory_of(path).len()..].trim_start_matches('/').trim_end_matches(".sql");
            match numbering::number_of(stem, '_') {
                Some(number) => numbered.push(Numbered { number, path }),
                None => faults.push(Fault::new(path, 1, BADLY_NAMED)),
            }
        }
        let first = numbered.first().map_or(1, |first| first.number.max(1));
        faults.extend(numbering::judge(&numbered, first));
    }
    faults
}

const BADLY_NAMED: &str = "is not named NNNN_words.sql in small letters, so its place in the order of migrations is \
                           unknown; rename it with the next number";

fn directory_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(directory, _)| directory)
}

#[cfg(test)]
mod tests;
