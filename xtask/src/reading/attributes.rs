//! Finds attributes, and the parts of a file that exist for tests only, in the code layer of Rust source.

use std::ops::Range;

use super::words::{find_word, in_identifier, line_of};

/// One attribute: where it opens, and what stands between its brackets.
#[derive(Debug)]
pub(crate) struct Attribute<'a> {
    pub(crate) line: usize,
    pub(crate) body: &'a str,
    end: usize,
}

impl<'a> Attribute<'a> {
    /// Every outer and inner attribute of `code`.
    pub(crate) fn all_in(code: &'a str) -> impl Iterator<Item = Self> {
        code.match_indices('#').filter_map(move |(at, _)| {
            let after = &code[at + 1..];
            let open = at + 1 + usize::from(after.starts_with('!'));
            let close = end_of_group(code, open, '[', ']')?;
            Some(Self { line: line_of(code, at), body: &code[open + 1..close - 1], end: close })
        })
    }

    /// What is between the parentheses of each `name(…)` in this attribute, at any depth.
    pub(crate) fn arguments_of(&self, name: &str) -> impl Iterator<Item = &'a str> {
        let body = self.body;
        find_word(body, name).filter_map(move |at| {
            let open = at + name.len();
            end_of_group(body, open, '(', ')').map(|close| &body[open + 1..close - 1])
        })
    }

    /// Whether the attribute itself, or what a `cfg_attr` turns it into, is called `name`.
    pub(crate) fn is(&self, name: &str) -> bool {
        let first = |text: &str| text.trim_start().split(|letter| !in_identifier(letter)).next() == Some(name);
        first(self.body) || self.arguments_of("cfg_attr").any(|list| list.split(',').skip(1).any(first))
    }

    fn is_for_tests(&self) -> bool {
        let mut conditions = self.arguments_of("cfg");
        self.is("cfg") && conditions.any(|text| find_word(text, "test").any(|at| !text[..at].ends_with("not(")))
    }
}

/// The lines of the items marked `#[cfg(test)]` that have a body.
pub(crate) fn lines_for_tests(code: &str) -> Vec<Range<usize>> {
    let marks = Attribute::all_in(code).filter(Attribute::is_for_tests);
    marks
        .filter_map(|mark| {
            let open = mark.end + code[mark.end..].find(['{', ';'])?;
            let close = end_of_group(code, open, '{', '}')?;
            Some(line_of(code, open)..line_of(code, close - 1) + 1)
        })
        .collect()
}

/// The offset after the bracket that closes the one at `open`, or nothing when none opens there.
fn end_of_group(code: &str, open: usize, opening: char, closing: char) -> Option<usize> {
    let mut depth = 0_usize;
    for (n, letter) in code[open..].char_indices() {
        if letter == opening {
            depth += 1;
        } else if letter == closing {
            depth = depth.checked_sub(1)?;
        }
        if depth == 0 {
            return (letter == closing).then(|| open + n + letter.len_utf8());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attribute_may_span_lines() {
        let found: Vec<_> = Attribute::all_in("x\n#[expect(\n  a,\n  reason = z\n)]\nfn f() {}").collect();

        assert_eq!(found.len(), 1);
        assert_eq!(found[0].line, 2);
        assert!(found[0].arguments_of("expect").next().unwrap().contains("reason"));
    }

    #[test]
    fn an_attribute_behind_a_condition_is_seen() {
        let hidden: Vec<_> = Attribute::all_in("#[cfg_attr(miri, ignore)]").collect();

        assert!(hidden[0].is("ignore"));
        assert!(!hidden[0].is("miri"));
    }

    #[test]
    fn a_raw_identifier_is_no_attribute() {
        assert_eq!(Attribute::all_in("r#type #").count(), 0);
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
