//! A path named in a document exists.
//!
//! Judges links, which lead from the document, and code spans that name a place of this repository,
//! which may be written from its root or from the document. Leaves alone what only looks like a
//! path: routes, addresses, packages, patterns, and paths in fenced code.

use super::Fault;
use crate::reading::markdown::{Part, Parts};
use crate::tree::{File, Tree};

const WELL_KNOWN: &[&str] =
    &["crates", "docs", "examples", "bench", "chaos", "xtask", "scripts", "src", "tests", "sql", ".ci"];
const ENDINGS: &[&str] = &[".md", ".rs", ".sql", ".toml"];
/// What stands for a number in the pattern of a name.
const PATTERN: &str = "NNNN";

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let documents = tree.with_extension("md").filter(|file| is_document(&file.path));
    documents.flat_map(|file| judge(tree, file)).collect()
}

fn is_document(path: &str) -> bool {
    !path.contains('/') || path.starts_with("docs/") || path.starts_with("crates/")
}

fn judge(tree: &Tree, file: &File) -> Vec<Fault> {
    let parts = Parts::of(&file.text);
    let links = parts.link_targets.iter().filter_map(named).filter(|(path, _)| !leads_to(tree, &file.path, path));
    let spans = parts.code_spans.iter().filter_map(named).filter(|(path, _)| is_ours(tree, path));
    let spans = spans.filter(|(path, _)| !leads_to(tree, "", path) && !leads_to(tree, &file.path, path));
    let missing = links.chain(spans);
    missing
        .map(|(path, line)| {
            let sentence =
                format!("names {path}, which does not exist; a reader would search in vain, so name it right");
            Fault::new(&*file.path, line, sentence)
        })
        .collect()
}

/// The path that a part of a document names, and its line.
fn named(part: &Part) -> Option<(&str, usize)> {
    as_path(&part.text).map(|path| (path, part.line))
}

/// The path in a token, without its anchor or line number, when it looks like a relative one.
fn as_path(token: &str) -> Option<&str> {
    let path = token.split_once('#').map_or(token, |(path, _)| path);
    let path = path.rsplit_once(':').filter(|(_, line)| line.parse::<u32>().is_ok()).map_or(path, |(path, _)| path);
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "._-+/".contains(letter);
    let shaped = path.contains('/') || ENDINGS.iter().any(|ending| path.ends_with(ending));
    let foreign = path.starts_with('/') || path.starts_with("../shared") || path.contains("...");
    (shaped && !foreign && path.chars().all(plain) && !path.contains(PATTERN)).then_some(path)
}

fn is_ours(tree: &Tree, path: &str) -> bool {
    let first = path.split('/').find(|component| !matches!(*component, "." | "..")).unwrap_or_default();
    WELL_KNOWN.contains(&first) || (!first.is_empty() && tree.has(first))
}

/// Whether `path`, seen from the document `from`, leads to something in the tree.
fn leads_to(tree: &Tree, from: &str, path: &str) -> bool {
    let mut place: Vec<&str> = from.split('/').collect();
    place.pop();
    for component in path.split('/') {
        match component {
            "" | "." => {}
            ".." if place.is_empty() => return false,
            ".." => drop(place.pop()),
            name => place.push(name),
        }
    }
    place.is_empty() || tree.has(&place.join("/"))
}

#[cfg(test)]
mod tests;
