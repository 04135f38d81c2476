//! Where comments and strings of Rust begin and end.

use super::layers::{Escapes, Layer, Layers, end_of_block_comment, end_of_line, end_of_quoted, stands_at};
use super::words::in_identifier;

/// Takes Rust source apart; character literals count as quoted text.
pub(crate) fn layers(text: &str) -> Layers {
    Layers::split(text, stretch_at)
}

fn stretch_at(letters: &[char], at: usize) -> (Layer, usize) {
    if stands_at(letters, at, "//") {
        return (Layer::Comment, end_of_line(letters, at));
    }
    if stands_at(letters, at, "/*") {
        return (Layer::Comment, end_of_block_comment(letters, at));
    }
    match letters[at] {
        '"' => (Layer::Quoted, end_of_quoted(letters, at, '"', Escapes::Backslash)),
        '\'' => end_of_character(letters, at).map_or((Layer::Code, at + 1), |end| (Layer::Quoted, end)),
        letter if in_identifier(letter) => identifier_or_prefixed_string(letters, at),
        _ => (Layer::Code, at + 1),
    }
}

/// The end of a character literal, or nothing when the quote opens a lifetime.
fn end_of_character(letters: &[char], at: usize) -> Option<usize> {
    match (letters.get(at + 1), letters.get(at + 2)) {
        (Some('\\'), _) => Some(end_of_quoted(letters, at, '\'', Escapes::Backslash)),
        (Some(_), Some('\'')) => Some(at + 3),
        _ => None,
    }
}

fn identifier_or_prefixed_string(letters: &[char], at: usize) -> (Layer, usize) {
    let end = letters[at..].iter().position(|&letter| !in_identifier(letter)).map_or(letters.len(), |n| at + n);
    let word: String = letters[at..end].iter().collect();
    match word.as_str() {
        "b" | "c" if stands_at(letters, end, "\"") => {
            (Layer::Quoted, end_of_quoted(letters, end, '"', Escapes::Backslash))
        }
        "r" | "br" | "cr" => end_of_raw_string(letters, end).map_or((Layer::Code, end), |end| (Layer::Quoted, end)),
        _ => (Layer::Code, end),
    }
}

/// The end of a raw string whose `#`s or quote begin at `at`, or nothing when a raw identifier begins there.
fn end_of_raw_string(letters: &[char], at: usize) -> Option<usize> {
    let hashes = letters[at..].iter().take_while(|&&letter| letter == '#').count();
    if !stands_at(letters, at + hashes, "\"") {
        return None;
    }
    let closing = format!("\"{}", "#".repeat(hashes));
    let body = at + hashes + 1;
    let end = (body..letters.len()).find(|&here| stands_at(letters, here, &closing));
    Some(end.map_or(letters.len(), |here| here + closing.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_strings_are_not_code() {
        let text = "let a = \"one\"; // two\n/* three /* four */ five */ let b;";

        let layers = layers(text);

        assert_eq!(layers.code.split_whitespace().collect::<Vec<_>>(), ["let", "a", "=", ";", "let", "b;"]);
        assert_eq!(layers.quoted.trim(), "\"one\"");
        assert_eq!(layers.comments.lines().next().unwrap().trim(), "// two");
    }

    #[test]
    fn raw_strings_end_at_their_own_mark() {
        let layers = layers(r##"f(r#"a " b"#, br"c\", b"d\"e", r#type)"##);

        assert_eq!(layers.code.split_whitespace().collect::<String>(), "f(,,,r#type)");
    }

    #[test]
    fn a_lifetime_opens_no_character() {
        let layers = layers("fn f<'a>(x: &'a str) { g('\"', '\\'', 'x') } // it's");

        assert_eq!(layers.code.trim_end(), "fn f<'a>(x: &'a str) { g(   ,     ,    ) }");
    }

    #[test]
    fn every_layer_keeps_the_lines() {
        let text = "a\n\"b\nc\"\n// d\n/* e\n*/ f\n";

        let layers = layers(text);

        for layer in [layers.code, layers.comments, layers.quoted] {
            assert_eq!(layer.matches('\n').count(), 6);
        }
    }
}
