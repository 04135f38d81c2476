//! Texts that may hold a NUL character, which PostgreSQL's `text` cannot.
//!
//! Owns how such a text is stored: every NUL as `U+0001 0`, and every U+0001 as `U+0001 1`.
//! Promises that what is read is what was written, that different texts stay different, and that a
//! text without either character is stored as it is. Items and events need none of this: they are
//! JSON, which escapes NUL by itself. Names of instances, sessions and tags are not translated; the
//! server refuses a NUL there, in words.

use std::borrow::Cow;

const MARK: char = '\u{1}';

/// As the database holds it.
pub(crate) fn stored(text: &str) -> Cow<'_, str> {
    if !text.contains(['\0', MARK]) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 8);
    for letter in text.chars() {
        match letter {
            '\0' => safe.extend([MARK, '0']),
            MARK => safe.extend([MARK, '1']),
            other => safe.push(other),
        }
    }
    Cow::Owned(safe)
}

/// As it was written.
pub(crate) fn read(text: String) -> String {
    if !text.contains(MARK) {
        return text;
    }
    let mut whole = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        whole.push(match letter {
            MARK if letters.next() == Some('0') => '\0',
            letter => letter,
        });
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_what_was_written() {
        for text in ["", "plain", "\0", "a\0b", "\u{1}", "\u{1}0", "\u{1}1", "\0\u{1}\0", "\u{1}\u{1}0"] {
            let safe = stored(text).into_owned();

            assert!(!safe.contains('\0'), "{text:?}");
            assert_eq!(read(safe), text, "{text:?}");
        }
    }

    #[test]
    fn a_plain_text_is_stored_as_it_is() {
        assert!(matches!(stored("plain \u{2} text"), Cow::Borrowed("plain \u{2} text")));
    }
}
