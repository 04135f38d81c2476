//! Names say what a thing is: no file, module or type is called by a word that fits everything.

use super::Fault;
use crate::reading::rust;
use crate::reading::words::{find_word, in_identifier, line_of, parts_of_name};
use crate::tree::{File, Tree};

const EMPTY_WORDS: &[&str] =
    &["manager", "managers", "helper", "helpers", "util", "utils", "common", "misc", "info", "infos", "data"];

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let paths = tree.paths().flat_map(judge_path);
    let names = tree.with_extension("rs").flat_map(judge_names);
    paths.chain(names).collect()
}

fn judge_path(path: &str) -> Vec<Fault> {
    let (directories, file_name) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = file_name.rsplit_once('.').map_or(file_name, |(stem, _)| stem);
    let mut faults: Vec<Fault> = directories
        .split('/')
        .chain([stem])
        .filter_map(|component| empty_part(component).map(|word| (component, word)))
        .map(|(component, word)| Fault::new(path, 1, sentence(&format!("the path component {component:?}"), &word)))
        .collect();
    if file_name == "mod.rs" {
        let sentence = "is called mod.rs, so its tab and its search result name nothing; call it after its module, \
                        one directory up";
        faults.push(Fault::new(path, 1, sentence));
    }
    faults
}

fn judge_names(file: &File) -> Vec<Fault> {
    let code = rust::layers(&file.text).code;
    let types = ["struct", "enum", "trait"].into_iter().flat_map(|keyword| declared(&code, keyword));
    let types = types.filter_map(|(line, name)| empty_end(name).map(|word| (line, format!("the type {name}"), word)));
    // A module in a file of its own is judged by its path.
    let modules = declared(&code, "mod").filter(|(_, name)| !has_own_file(&code, name));
    let modules = modules.filter_map(|(line, name)| empty_part(name).map(|w| (line, format!("the module {name}"), w)));
    types.chain(modules).map(|(line, what, word)| Fault::new(&*file.path, line, sentence(&what, &word))).collect()
}

fn sentence(what: &str, word: &str) -> String {
    format!("{what} has the word {word:?}, which fits everything and means nothing; name what it owns or does")
}

/// The names declared with this keyword, each with its line.
fn declared<'a>(code: &'a str, keyword: &'a str) -> impl Iterator<Item = (usize, &'a str)> {
    find_word(code, keyword).filter_map(move |at| {
        let rest = code[at + keyword.len()..].trim_start();
        let end = rest.find(|letter| !in_identifier(letter)).unwrap_or(rest.len());
        (end > 0).then(|| (line_of(code, at), &rest[..end]))
    })
}

fn has_own_file(code: &str, module: &str) -> bool {
    code.contains(&format!("mod {module};"))
}

fn empty_part(name: &str) -> Option<String> {
    parts_of_name(name).find(|part| EMPTY_WORDS.contains(&part.as_str()))
}

/// The first or last word of a `CamelCase` name, when it is an empty one.
fn empty_end(name: &str) -> Option<String> {
    let words = camel_words(name);
    let ends = [words.first(), words.last()];
    ends.into_iter().flatten().find(|word| EMPTY_WORDS.contains(&word.as_str())).cloned()
}

/// `HTTPInfo` is `http`, `info`: a word begins at a capital that follows or precedes a small
/// letter.
fn camel_words(name: &str) -> Vec<String> {
    let letters: Vec<char> = name.chars().collect();
    let mut words: Vec<String> = Vec::new();
    for (n, letter) in letters.iter().enumerate() {
        let beside_small = |at: Option<usize>| at.and_then(|at| letters.get(at)).is_some_and(|l| l.is_lowercase());
        let begins = letter.is_uppercase() && (beside_small(n.checked_sub(1)) || beside_small(Some(n + 1)));
        match words.last_mut() {
            Some(word) if !begins => word.extend(letter.to_lowercase()),
            _ => words.push(letter.to_lowercase().collect()),
        }
    }
    words
}

#[cfg(test)]
mod tests;
