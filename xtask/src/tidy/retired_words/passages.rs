//! Where public text is: documents, and the rustdoc and the messages of code.

use crate::reading::attributes::lines_for_tests;
use crate::reading::{markdown, rust, sql};
use crate::tree::{File, Tree};

/// Code whose rustdoc and messages are judged, by the beginning of its path.
const CODE: &[&str] = &["crates/", "chaos/src/", "bench/src/", "examples/", "xtask/src/"];

const DOCUMENTS: &[&str] = &["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "crates/wake/README.md"];
/// It lists the retired words.
const NOT_JUDGED: &[&str] = &["docs/glossary.md"];

/// A stretch of public text, the line it begins on, and the file it is from.
pub(super) struct Passage<'a> {
    pub(super) path: &'a str,
    pub(super) line: usize,
    pub(super) text: String,
}

pub(super) fn all_in(tree: &Tree) -> Vec<Passage<'_>> {
    let documents = tree.files().filter(|file| is_public(file)).map(document);
    let code = || tree.files().filter(|file| is_public_code(&file.path));
    documents.chain(code().filter_map(rustdoc)).chain(code().flat_map(messages)).collect()
}

/// Records of decisions and internal pages are for those who know the old words, too.
fn is_public(file: &File) -> bool {
    let path = &*file.path;
    let page = path.strip_prefix("docs/").is_some_and(|name| !name.contains('/')) && file.extension() == "md";
    (page || DOCUMENTS.contains(&path)) && !NOT_JUDGED.contains(&path)
}

fn is_public_code(path: &str) -> bool {
    let for_tests = path.contains("/tests/") || path.ends_with("/tests.rs");
    CODE.iter().any(|beginning| path.starts_with(beginning)) && !for_tests
}

fn document(file: &File) -> Passage<'_> {
    Passage { path: &file.path, line: 1, text: markdown::prose(&file.text) }
}

fn rustdoc(file: &File) -> Option<Passage<'_>> {
    let text = || markdown::prose(&rust::documentation(&file.text));
    (file.extension() == "rs").then(|| Passage { path: &file.path, line: 1, text: text() })
}

/// Strings with a space in them are sentences, outside of tests. Values in braces are code.
fn messages(file: &File) -> Vec<Passage<'_>> {
    let strings = match file.extension() {
        "rs" => rust::strings(&file.text),
        "sql" => sql::strings(&file.text),
        _ => Vec::new(),
    };
    let tests = lines_for_tests(&file.text);
    let sentences = strings.into_iter().filter(|string| string.text.trim_matches('"').trim().contains(' '));
    let of_product = sentences.filter(|string| !tests.iter().any(|lines| lines.contains(&string.line)));
    of_product
        .map(|string| Passage { path: &file.path, line: string.line, text: without_values(&string.text) })
        .collect()
}

/// The text with line breaks as they are printed and every `{…}` blanked, in as many lines.
fn without_values(text: &str) -> String {
    let mut depth = 0_usize;
    let text = text.replace("\\n", "  ");
    let letters = text.chars().map(|letter| {
        let inside = depth > 0;
        match letter {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if (inside || letter == '{') && letter != '\n' { ' ' } else { letter }
    });
    letters.collect()
}
