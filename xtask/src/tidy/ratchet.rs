//! Lists of files with a number each, which only comes down.
//!
//! A list has a path and a number on each line, `#` before a remark. Owns the reading; what a
//! number counts, and when it must be lowered, is decided by the check that owns the list.

use super::Fault;
use crate::tree::Tree;

/// One line of a list: the file, and how much it may have.
pub(super) struct Entry<'a> {
    pub(super) line: usize,
    pub(super) path: &'a str,
    pub(super) ceiling: usize,
}

/// The entries of the list at this path, and what is wrong with the others.
pub(super) fn read<'a>(tree: &'a Tree, list: &str) -> (Vec<Entry<'a>>, Vec<Fault>) {
    let mut entries: Vec<Entry<'_>> = Vec::new();
    let mut faults = Vec::new();
    let text = tree.file(list).map_or("", |file| &file.text);
    for (line, words) in text.lines().enumerate().map(|(n, text)| (n + 1, text.trim())) {
        if words.is_empty() || words.starts_with('#') {
            continue;
        }
        let entry = words.split_once(' ').and_then(|(path, n)| Some((path, n.trim().parse().ok()?)));
        match entry {
            None => faults.push(Fault::new(list, line, "is not a path and a number; write both or remove it")),
            Some((path, _)) if entries.iter().any(|known| known.path == path) => {
                faults.push(Fault::new(list, line, format!("lists {path} a second time; keep one entry")));
            }
            Some((path, ceiling)) => entries.push(Entry { line, path, ceiling }),
        }
    }
    (entries, faults)
}
