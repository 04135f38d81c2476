//! Values of a request, as error sentences repeat them.

/// Characters of a value that are repeated. A sentence needs no more, and a value of megabytes must
/// not come back.
const SHOWN_MAX: usize = 200;

/// The beginning of a text, with a sign that it went on.
pub(crate) fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The same in quotes, with control characters and quotes escaped.
pub(crate) fn quoted(text: &str) -> String {
    format!("{:?}", shortened(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(shortened(&"ü".repeat(200)), "ü".repeat(200));
        assert_eq!(shortened(&"ü".repeat(201)), format!("{}…", "ü".repeat(200)));
        assert_eq!(quoted("a\n\u{1b}"), r#""a\n\u{1b}""#);
    }
}
