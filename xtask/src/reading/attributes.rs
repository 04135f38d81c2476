//! Finds attributes, and the parts of a file that exist for tests only, among the tokens of Rust
//! source.

use std::ops::Range;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

use super::rust::tokens;
use super::words::find_word;

/// One attribute: where it opens, and what stands between its brackets.
#[derive(Debug)]
pub(crate) struct Attribute {
    pub(crate) line: usize,
    body: TokenStream,
}

impl Attribute {
    /// Every outer and inner attribute of a file, also inside of macros. Documentation is none.
    pub(crate) fn all_in(text: &str) -> Vec<Self> {
        let mut found = Vec::new();
        walk(tokens(text), &mut |siblings| {
            found.extend((0..siblings.len()).filter_map(|at| Some(attribute_at(&siblings[at..])?.0)));
        });
        found
    }

    /// Whether the attribute itself, or what a `cfg_attr` turns it into, is called `name`.
    pub(crate) fn is(&self, name: &str) -> bool {
        let body: Vec<TokenTree> = self.body.clone().into_iter().collect();
        match &body[..] {
            [TokenTree::Ident(condition), TokenTree::Group(list)] if condition == "cfg_attr" => {
                let list: Vec<TokenTree> = list.stream().into_iter().collect();
                list.split(|token| is_punct(token, ',')).skip(1).any(|part| is_ident(part.first(), name))
            }
            _ => is_ident(body.first(), name),
        }
    }

    /// Whether this word stands anywhere in it.
    pub(crate) fn says(&self, word: &str) -> bool {
        find_word(&self.body.to_string(), word).next().is_some()
    }

    fn is_for_tests(&self) -> bool {
        let body: String = self.body.to_string().split_whitespace().collect();
        self.is("cfg") && find_word(&body, "test").any(|at| !body[..at].ends_with("not("))
    }
}

/// The lines of the items marked `#[cfg(test)]` that have a body.
pub(crate) fn lines_for_tests(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    walk(tokens(text), &mut |siblings| {
        found.extend((0..siblings.len()).filter_map(|at| {
            let (attribute, length) = attribute_at(&siblings[at..])?;
            let body = body_of(&siblings[at + length..]).filter(|_| attribute.is_for_tests())?;
            Some(body.span_open().start().line..body.span_close().end().line + 1)
        }));
    });
    found
}

/// Shows every list of tokens that stand beside each other.
fn walk(stream: TokenStream, show: &mut impl FnMut(&[TokenTree])) {
    let siblings: Vec<TokenTree> = stream.into_iter().collect();
    show(&siblings);
    for token in siblings {
        if let TokenTree::Group(group) = token {
            walk(group.stream(), show);
        }
    }
}

/// The attribute that these tokens begin with, and how many of them it takes.
fn attribute_at(tokens: &[TokenTree]) -> Option<(Attribute, usize)> {
    let length = match tokens {
        [hash, bang, ..] if is_punct(hash, '#') && is_punct(bang, '!') => 3,
        [hash, ..] if is_punct(hash, '#') => 2,
        _ => return None,
    };
    let TokenTree::Group(group) = tokens.get(length - 1)? else { return None };
    let body = group.stream();
    let documents = is_ident(body.clone().into_iter().next().as_ref(), "doc");
    let found = group.delimiter() == Delimiter::Bracket && !documents;
    found.then(|| (Attribute { line: tokens[0].span().start().line, body }, length))
}

/// The braces of the item that these tokens begin with, unless it ends without.
fn body_of(tokens: &[TokenTree]) -> Option<&Group> {
    tokens.iter().take_while(|token| !is_punct(token, ';')).find_map(|token| match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => Some(group),
        _ => None,
    })
}

fn is_ident(token: Option<&TokenTree>, name: &str) -> bool {
    matches!(token, Some(TokenTree::Ident(ident)) if ident == name)
}

fn is_punct(token: &TokenTree, letter: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attribute_may_span_lines() {
        let found = Attribute::all_in("x\n#[expect(\n  a,\n  reason = z\n)]\nfn f() {}");

        assert_eq!(found.len(), 1);
        assert_eq!(found[0].line, 2);
        assert!(found[0].is("expect") && found[0].says("reason"));
    }

    #[test]
    fn an_attribute_behind_a_condition_is_seen() {
        let hidden = Attribute::all_in("#[cfg_attr(miri, ignore)]");

        assert!(hidden[0].is("ignore"));
        assert!(!hidden[0].is("miri"));
    }

    #[test]
    fn an_attribute_inside_of_a_macro_is_seen() {
        assert!(Attribute::all_in("proptest! { #[ignore] fn f() {} }")[0].is("ignore"));
    }

    #[test]
    fn a_raw_identifier_is_no_attribute() {
        assert_eq!(Attribute::all_in("r#type #").len(), 0);
    }

    #[test]
    fn documentation_is_no_attribute() {
        assert_eq!(Attribute::all_in("//! a\n/// b\nfn f() {}").len(), 0);
    }

    #[test]
    fn the_body_of_a_test_module_is_for_tests() {
        let code = "fn a() {}\n#[cfg(test)]\nmod tests {\n  fn b() {}\n}\nfn c() {}\n";

        assert_eq!(lines_for_tests(code), vec![3..6]);
    }

    #[test]
    fn what_exists_outside_of_tests_is_not_for_tests() {
        assert!(lines_for_tests("#[cfg(not(test))]\nmod a {}\n#[cfg(unix)]\nmod b {}").is_empty());
    }

    #[test]
    fn a_test_module_in_its_own_file_has_no_lines_here() {
        assert!(lines_for_tests("#[cfg(test)]\nmod tests;\nfn c() {}\n").is_empty());
    }
}
