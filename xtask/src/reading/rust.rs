//! Rust source as tokens, and the same taken apart into layers.
//!
//! Reads with `proc-macro2`, which knows where strings, characters, lifetimes and comments end.

use std::str::FromStr;

use proc_macro2::{Span, TokenStream, TokenTree};

use super::layers::{Layer, Layers};
use super::markdown::Part;

/// The tokens of a file; none of a file that is no Rust, which the compiler says better.
pub(crate) fn tokens(text: &str) -> TokenStream {
    TokenStream::from_str(text).unwrap_or_default()
}

/// Takes Rust source apart; literals count as quoted text. What no token covers is a comment, or
/// blank.
pub(crate) fn layers(text: &str) -> Layers {
    let mut kinds = vec![Layer::Comment; text.len()];
    mark(tokens(text), text, &mut kinds);
    Layers::of(text, &kinds)
}

/// The lines that rustdoc shows, without their marks; every other line is empty.
pub(crate) fn documentation(text: &str) -> String {
    let comments = layers(text).comments;
    let shown = comments.lines().map(|line| {
        let line = line.trim();
        line.strip_prefix("//!").or_else(|| line.strip_prefix("///")).unwrap_or_default()
    });
    shown.map(|line| line.strip_prefix(' ').unwrap_or(line).to_owned() + "\n").collect()
}

/// The string literals as they are written, also inside of macros, each with its line.
pub(crate) fn strings(text: &str) -> Vec<Part> {
    let mut found = Vec::new();
    collect_strings(tokens(text), text, &mut found);
    found
}

fn collect_strings(tokens: TokenStream, text: &str, found: &mut Vec<Part>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) if !text[group.span().byte_range()].starts_with('/') => {
                collect_strings(group.stream(), text, found);
            }
            TokenTree::Literal(literal) => {
                let written = &text[literal.span().byte_range()];
                if written.ends_with(['"', '#']) {
                    found.push(Part { line: literal.span().start().line, text: written.to_owned() });
                }
            }
            _ => {}
        }
    }
}

fn mark(tokens: TokenStream, text: &str, kinds: &mut [Layer]) {
    let mut cover = |span: Span, layer: Layer| {
        let place = span.byte_range();
        let is_comment = ["//", "/*"].iter().any(|opening| text[place.clone()].starts_with(opening));
        // A comment for rustdoc is an attribute among the tokens.
        kinds[place].fill(if is_comment { Layer::Comment } else { layer });
    };
    let mut inner = Vec::new();
    for token in tokens {
        match token {
            TokenTree::Group(group) if text[group.span().byte_range()].starts_with('/') => {}
            TokenTree::Group(group) => {
                cover(group.span_open(), Layer::Code);
                cover(group.span_close(), Layer::Code);
                inner.push(group.stream());
            }
            TokenTree::Literal(literal) if is_number(&text[literal.span().byte_range()]) => {
                cover(literal.span(), Layer::Code);
            }
            TokenTree::Literal(literal) => cover(literal.span(), Layer::Quoted),
            TokenTree::Ident(_) | TokenTree::Punct(_) => cover(token.span(), Layer::Code),
        }
    }
    for stream in inner {
        mark(stream, text, kinds);
    }
}

fn is_number(literal: &str) -> bool {
    literal.starts_with(|first: char| first.is_ascii_digit())
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
    fn documentation_is_a_comment() {
        let layers = layers("//! One.\n/// Two.\nfn f() {}\n/** three */ fn g() {}\n");

        assert_eq!(layers.code.split_whitespace().collect::<String>(), "fnf(){}fng(){}");
        assert_eq!(layers.comments.split_whitespace().collect::<String>(), "//!One.///Two./**three*/");
    }

    #[test]
    fn documentation_keeps_its_lines() {
        let text = "//! One.\n// no\nfn f() {\n    /// Two `a`.\n    g() // no\n}\n";

        assert_eq!(documentation(text), "One.\n\n\nTwo `a`.\n\n\n");
    }

    #[test]
    fn strings_are_found_inside_of_macros_and_not_in_comments() {
        let found = strings("/// \"a\"\nf(1, 'x');\nwarn!(\n    \"b {c}\");\nr#\"d\"#");

        let found: Vec<_> = found.iter().map(|part| (part.line, part.text.as_str())).collect();
        assert_eq!(found, [(4, "\"b {c}\""), (5, "r#\"d\"#")]);
    }

    #[test]
    fn raw_strings_end_at_their_own_mark() {
        let layers = layers(r##"f(r#"a " b"#, br"c\", b"d\"e", r#type, 1)"##);

        assert_eq!(layers.code.split_whitespace().collect::<String>(), "f(,,,r#type,1)");
    }

    #[test]
    fn a_lifetime_opens_no_character() {
        let layers = layers("fn f<'a>(x: &'a str) { g('\"', '\\'', 'x') } // it's");

        assert_eq!(layers.code.trim_end(), "fn f<'a>(x: &'a str) { g(   ,     ,    ) }");
    }

    #[test]
    fn every_layer_keeps_the_lines() {
        let text = "a\n\"b\nc\"\n// d\n/* é\n*/ f\n";

        let layers = layers(text);

        for layer in [layers.code, layers.comments, layers.quoted] {
            assert_eq!(layer.matches('\n').count(), 6);
        }
    }
}
