//! Where comments and strings of SQL begin and end, and what a file's header says.
//!
//! Text between dollar quotes is code here: it is the body of a function, and house rules hold
//! inside it.

use super::layers::{Escapes, Layer, Layers, end_of_block_comment, end_of_line, end_of_quoted, stands_at};
use super::markdown::Part;
use super::words::in_identifier;

/// Takes SQL apart; quoted names count as quoted text.
pub(crate) fn layers(text: &str) -> Layers {
    Layers::split(text, stretch_at)
}

/// The texts between single quotes, each with the line it begins on.
pub(crate) fn strings(text: &str) -> Vec<Part> {
    let quoted = layers(text).quoted;
    let mut line = 1;
    let mut strings = Vec::new();
    for (n, piece) in quoted.split('\'').enumerate() {
        if n % 2 == 1 {
            strings.push(Part { line, text: piece.to_owned() });
        }
        line += piece.matches('\n').count();
    }
    strings
}

/// The lines of the comment that opens a file, without their dashes.
pub(crate) fn header(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map_while(|line| line.strip_prefix("--")).map(str::trim)
}

fn stretch_at(letters: &[char], at: usize) -> (Layer, usize) {
    if stands_at(letters, at, "--") {
        return (Layer::Comment, end_of_line(letters, at));
    }
    if stands_at(letters, at, "/*") {
        return (Layer::Comment, end_of_block_comment(letters, at));
    }
    match letters[at] {
        '\'' => (Layer::Quoted, end_of_quoted(letters, at, '\'', escapes_before(letters, at))),
        '"' => (Layer::Quoted, end_of_quoted(letters, at, '"', Escapes::Doubling)),
        _ => (Layer::Code, at + 1),
    }
}

/// Backslashes escape only in strings written `E'…'`.
fn escapes_before(letters: &[char], quote: usize) -> Escapes {
    let before = |n: usize| quote.checked_sub(n).map(|at| letters[at]);
    let marked = matches!(before(1), Some('e' | 'E')) && !before(2).is_some_and(in_identifier);
    if marked { Escapes::Backslash } else { Escapes::Doubling }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_strings_and_quoted_names_are_not_code() {
        let layers = layers("select 'it''s', E'a\\'b', \"FROM\" -- FROM\n/* FROM */ from t");

        assert_eq!(layers.code.split_whitespace().collect::<String>(), "select,E,fromt");
    }

    #[test]
    fn the_body_of_a_function_is_code() {
        assert!(layers("do $$ begin perform 1; end $$").code.contains("perform"));
    }

    #[test]
    fn strings_are_found_between_their_quotes() {
        let found = strings("select 'a b', \"c\"\n-- 'd'\nraise exception 'e f'");

        let found: Vec<_> = found.iter().map(|part| (part.line, part.text.as_str())).collect();
        assert_eq!(found, [(1, "a b"), (3, "e f")]);
    }

    #[test]
    fn the_header_ends_with_the_first_line_of_code() {
        let lines: Vec<_> = header("-- One.\n-- locks: none\nselect 1\n-- two\n").collect();

        assert_eq!(lines, ["One.", "locks: none"]);
    }
}
