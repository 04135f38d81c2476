//! Numbered files: `0001`, `0002` and so on from a first number, none missing and none twice.

use super::Fault;

/// A file with the number in its name.
#[derive(Debug)]
pub(super) struct Numbered<'a> {
    pub(super) number: u32,
    pub(super) path: &'a str,
}

/// The number of a stem such as `0007-words` or `0007_words`; the words are small letters, digits
/// and the separator.
pub(super) fn number_of(stem: &str, separator: char) -> Option<u32> {
    let (number, words) = stem.split_once(separator)?;
    let plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == separator;
    let well_formed = number.len() == 4 && !words.is_empty() && words.chars().all(plain);
    well_formed.then(|| number.parse().ok()).flatten()
}

/// Judges files in the order of their paths: each number is one more than the one before, beginning
/// with `first`.
pub(super) fn judge(files: &[Numbered<'_>], first: u32) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut last = first.saturating_sub(1);
    for file in files {
        let next = last + 1;
        if file.number < next {
            let sentence =
                format!("has the number {:04}, which is taken or below 0001; give it the next free one", file.number);
            faults.push(Fault::new(file.path, 1, sentence));
        } else if file.number > next {
            let sentence = format!("leaves a gap in the numbers, for there is no {next:04}; close the gap");
            faults.push(Fault::new(file.path, 1, sentence));
        }
        last = last.max(file.number);
    }
    faults
}
