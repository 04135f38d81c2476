//! Finds whole words in a text, and the lines they are on.

/// The offsets at which `word` occurs and is not part of a longer identifier.
pub(crate) fn find_word(text: &str, word: &str) -> impl Iterator<Item = usize> {
    text.match_indices(word).map(|(at, _)| at).filter(move |&at| {
        let joined_before = joins(text[..at].chars().next_back(), word.chars().next());
        let joined_after = joins(word.chars().next_back(), text[at + word.len()..].chars().next());
        !joined_before && !joined_after
    })
}

/// The line of an offset, counted from 1.
pub(crate) fn line_of(text: &str, offset: usize) -> usize {
    text[..offset].matches('\n').count() + 1
}

/// Whether a character can be part of an identifier.
pub(crate) fn in_identifier(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// The parts of a name between `_`, `-`, `.` and the like, in lower case.
pub(crate) fn parts_of_name(name: &str) -> impl Iterator<Item = String> {
    name.split(|letter: char| !letter.is_alphanumeric()).filter(|part| !part.is_empty()).map(str::to_lowercase)
}

fn joins(left: Option<char>, right: Option<char>) -> bool {
    left.is_some_and(in_identifier) && right.is_some_and(in_identifier)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_inside_another_is_not_found() {
        assert_eq!(find_word("pg_sleep(1); sleep(2)", "sleep(").collect::<Vec<_>>(), [13]);
        assert_eq!(find_word("FROMAGE FROM", "FROM").collect::<Vec<_>>(), [8]);
    }

    #[test]
    fn lines_are_counted_from_one() {
        assert_eq!(line_of("a\nb", 0), 1);
        assert_eq!(line_of("a\nb", 2), 2);
    }
}
