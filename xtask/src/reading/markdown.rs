//! The prose of a Markdown document: its lines outside fenced code, their code spans, links and headings.

/// A line of prose with its number, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    pub(crate) number: usize,
    pub(crate) text: &'a str,
}

/// The lines outside fenced code.
pub(crate) fn prose(text: &str) -> impl Iterator<Item = Line<'_>> {
    let mut fence: Option<&str> = None;
    text.lines().enumerate().filter_map(move |(n, text)| {
        let mark = ["```", "~~~"].into_iter().find(|mark| text.trim_start().starts_with(mark));
        match (fence, mark) {
            (None, Some(opening)) => fence = Some(opening),
            (Some(opening), Some(closing)) if opening == closing => fence = None,
            (None, None) => return Some(Line { number: n + 1, text }),
            (Some(_), _) => {}
        }
        None
    })
}

impl<'a> Line<'a> {
    /// The text of a heading, whatever its level.
    pub(crate) fn heading(&self) -> Option<&'a str> {
        let text = self.text.trim_start_matches('#');
        (text.len() < self.text.len() && text.starts_with(' ')).then(|| text.trim())
    }

    /// What stands between backticks.
    pub(crate) fn code_spans(&self) -> Vec<&'a str> {
        self.parts().into_iter().filter_map(|(part, is_code)| is_code.then_some(part.trim())).collect()
    }

    /// Where links, images and link definitions lead, without titles.
    pub(crate) fn link_targets(&self) -> Vec<&'a str> {
        let plain = self.parts().into_iter().filter_map(|(part, is_code)| (!is_code).then_some(part));
        // A code span may be the text of a link, so the target is looked for in what follows it.
        plain.flat_map(|part| part.match_indices("](").filter_map(|(at, _)| target(&part[at + 2..], ')'))).collect()
    }

    /// Where a line of the form `[name]: target` leads.
    pub(crate) fn definition_target(&self) -> Option<&'a str> {
        let (name, rest) = self.text.trim_start().strip_prefix('[')?.split_once("]:")?;
        (!name.contains(']')).then(|| rest.split_whitespace().next()).flatten()
    }

    /// The line cut at its backticks, each part with whether it is code.
    fn parts(&self) -> Vec<(&'a str, bool)> {
        let mut parts = Vec::new();
        let mut rest = self.text;
        while let Some(open) = rest.find('`') {
            let ticks = rest[open..].len() - rest[open..].trim_start_matches('`').len();
            let body = &rest[open + ticks..];
            let Some(close) = body.find(&rest[open..open + ticks]) else { break };
            parts.push((&rest[..open], false));
            parts.push((&body[..close], true));
            rest = &body[close + ticks..];
        }
        parts.push((rest, false));
        parts
    }
}

fn target(rest: &str, closing: char) -> Option<&str> {
    rest.split_once(closing).and_then(|(inside, _)| inside.split_whitespace().next())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Line<'_> {
        Line { number: 1, text }
    }

    #[test]
    fn fenced_code_is_no_prose() {
        let numbers: Vec<_> = prose("a\n```rust\nb\n```\nc\n").map(|line| line.number).collect();

        assert_eq!(numbers, [1, 5]);
    }

    #[test]
    fn code_spans_and_links_are_told_apart() {
        let line = line("see `a/b.rs`, [text](c.md \"title\"), [`d`](e/f.md) and ``g ` h``; `[x](y)`");

        assert_eq!(line.code_spans(), ["a/b.rs", "d", "g ` h", "[x](y)"]);
        assert_eq!(line.link_targets(), ["c.md", "e/f.md"]);
    }

    #[test]
    fn a_link_may_be_defined_on_its_own_line() {
        assert_eq!(line("[guide]: docs/guide.md").definition_target(), Some("docs/guide.md"));
        assert_eq!(line("see [guide]").definition_target(), None);
    }

    #[test]
    fn a_heading_needs_a_space() {
        assert_eq!(line("## Context").heading(), Some("Context"));
        assert_eq!(line("#[test]").heading(), None);
    }
}
