//! What a Markdown document names and how it is divided: code spans, links and headings, outside of
//! code blocks.

use pulldown_cmark::{Event, LinkType, Options, Parser, Tag, TagEnd};

use super::layers::{Layer, Layers};
use super::words::line_of;

/// A part of a document with the line it begins on, counted from 1.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) line: usize,
    pub(crate) text: String,
}

/// The parts of a document, each kind in the order of the text.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    /// The texts of headings, whatever their level.
    pub(crate) headings: Vec<Part>,
    /// What stands between backticks.
    pub(crate) code_spans: Vec<Part>,
    /// Where links, images and link definitions lead.
    pub(crate) link_targets: Vec<Part>,
}

impl Parts {
    /// Reads a document.
    pub(crate) fn of(text: &str) -> Self {
        let part = |at: usize, found: &str| Part { line: line_of(text, at), text: found.to_owned() };
        let events = Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter();
        let mut parts = Self::default();
        let definitions = events.reference_definitions().iter();
        parts.link_targets.extend(definitions.map(|(_, definition)| part(definition.span.start, &definition.dest)));
        let mut heading: Option<Part> = None;
        for (event, place) in events {
            match event {
                Event::Start(Tag::Heading { .. }) => heading = Some(part(place.start, "")),
                Event::End(TagEnd::Heading(_)) => parts.headings.extend(heading.take()),
                // A link by name is judged where the name is defined.
                Event::Start(
                    Tag::Link { link_type: LinkType::Inline, dest_url, .. }
                    | Tag::Image { link_type: LinkType::Inline, dest_url, .. },
                ) => parts.link_targets.push(part(place.start, &dest_url)),
                Event::Text(text) => heading.iter_mut().for_each(|heading| heading.text.push_str(&text)),
                Event::Code(code) => {
                    if let Some(heading) = &mut heading {
                        heading.text.push_str(&code);
                    }
                    parts.code_spans.push(part(place.start, &code));
                }
                _ => {}
            }
        }
        parts
    }
}

/// The prose of a document, line by line: code, addresses of links and marks are blanked.
pub(crate) fn prose(text: &str) -> String {
    let mut layers = vec![Layer::Code; text.len()];
    let mut in_block = false;
    for (event, place) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
        match event {
            Event::Start(Tag::CodeBlock(_)) => in_block = true,
            Event::End(TagEnd::CodeBlock) => in_block = false,
            Event::Text(_) if !in_block => layers[place].fill(Layer::Quoted),
            _ => {}
        }
    }
    Layers::of(text, &layers).quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(parts: &[Part]) -> Vec<&str> {
        parts.iter().map(|part| part.text.as_str()).collect()
    }

    #[test]
    fn fenced_code_is_no_prose() {
        let parts = Parts::of("`a`\n```rust\n`b`\n```\n`c`\n");

        assert_eq!(parts.code_spans.iter().map(|part| part.line).collect::<Vec<_>>(), [1, 5]);
    }

    #[test]
    fn code_spans_and_links_are_told_apart() {
        let parts = Parts::of("see `a/b.rs`, [text](c.md \"title\"), [`d`](e/f.md) and ``g ` h``; `[x](y)`");

        assert_eq!(texts(&parts.code_spans), ["a/b.rs", "d", "g ` h", "[x](y)"]);
        assert_eq!(texts(&parts.link_targets), ["c.md", "e/f.md"]);
    }

    #[test]
    fn a_link_may_be_defined_on_its_own_line() {
        let parts = Parts::of("see [guide]\n\n[guide]: docs/guide.md\n");

        assert_eq!(parts.link_targets, [Part { line: 3, text: "docs/guide.md".to_owned() }]);
    }

    #[test]
    fn a_heading_needs_a_space() {
        assert_eq!(texts(&Parts::of("## Context\n\n#[test]\n").headings), ["Context"]);
    }

    #[test]
    fn prose_is_what_is_neither_code_nor_an_address() {
        let text = "# One `two`\n\n[three](four.md) **five**\n```\nsix\n```\n| seven |\n|---|\n| eight |\n";

        let prose = prose(text);

        assert_eq!(prose.split_whitespace().collect::<Vec<_>>(), ["One", "three", "five", "seven", "eight"]);
        assert_eq!(prose.lines().count(), text.lines().count());
    }
}
