//! Long files are listed with a ceiling that only comes down.
//!
//! The list is `xtask/file-length.txt`: a path and a number of lines on each line, `#` before a
//! remark. A file that shrinks must be listed anew with its present length, so what was won is not
//! lost again. Nothing here remembers an earlier ceiling: that none is raised, a reviewer sees in
//! the diff of the list.

use super::Fault;
use crate::tree::Tree;

const LIST: &str = "xtask/file-length.txt";
const LONGEST_RUST: usize = 500;
const LONGEST_BY_NAME: &[(&str, usize)] = &[("ARCHITECTURE.md", 300)];

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let (entries, mut faults) = read_list(tree);
    for file in tree.with_extension("rs") {
        let lines = file.text.lines().count();
        let listed = entries.iter().any(|entry| entry.path == file.path);
        if lines > LONGEST_RUST && !listed {
            faults.push(too_long(&file.path, lines, LONGEST_RUST));
        }
    }
    for &(path, longest) in LONGEST_BY_NAME {
        let lines = tree.file(path).map_or(0, |file| file.text.lines().count());
        if lines > longest {
            faults.push(too_long(path, lines, longest));
        }
    }
    faults.extend(entries.iter().filter_map(|entry| judge(tree, entry)));
    faults
}

struct Entry<'a> {
    line: usize,
    path: &'a str,
    ceiling: usize,
}

fn read_list(tree: &Tree) -> (Vec<Entry<'_>>, Vec<Fault>) {
    let mut entries: Vec<Entry<'_>> = Vec::new();
    let mut faults = Vec::new();
    let text = tree.file(LIST).map_or("", |file| &file.text);
    for (line, words) in text.lines().enumerate().map(|(n, text)| (n + 1, text.trim())) {
        if words.is_empty() || words.starts_with('#') {
            continue;
        }
        let entry = words.split_once(' ').and_then(|(path, n)| Some((path, n.trim().parse().ok()?)));
        match entry {
            None => faults.push(Fault::new(LIST, line, "is not a path and a number of lines; write both or remove it")),
            Some((path, _)) if entries.iter().any(|known| known.path == path) => {
                faults.push(Fault::new(LIST, line, format!("lists {path} a second time; keep one entry")));
            }
            Some((path, ceiling)) => entries.push(Entry { line, path, ceiling }),
        }
    }
    (entries, faults)
}

fn judge(tree: &Tree, entry: &Entry<'_>) -> Option<Fault> {
    let &Entry { line, path, ceiling } = entry;
    let Some(file) = tree.file(path) else {
        return Some(Fault::new(LIST, line, format!("lists {path}, which does not exist; remove the entry")));
    };
    let lines = file.text.lines().count();
    if lines > ceiling {
        return Some(too_long(path, lines, ceiling));
    }
    if lines <= LONGEST_RUST {
        let sentence = format!("lists {path}, which has only {lines} lines by now; remove the entry");
        return Some(Fault::new(LIST, line, sentence));
    }
    // A tenth of slack, so that not every edit of a long file edits the list.
    (lines * 10 < ceiling * 9).then(|| {
        let sentence = format!("allows {path} {ceiling} lines, but it shrank to {lines}; write {lines}, to keep that");
        Fault::new(LIST, line, sentence)
    })
}

fn too_long(path: &str, lines: usize, longest: usize) -> Fault {
    let sentence = format!(
        "has {lines} lines, more than the {longest} it may have, too many to be read in one go; move one noun or one \
         step into a file of its own"
    );
    Fault::new(path, longest + 1, sentence)
}

#[cfg(test)]
mod tests;
