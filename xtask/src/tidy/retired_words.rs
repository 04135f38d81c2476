//! Public text uses one word for one idea, and none that was retired.
//!
//! Owns the table of retired words, with what to write instead (`docs/glossary.md` explains them).
//! Names of files, functions, settings and metrics do not count: they are code spans or paths.
//!
//! Next: `passages`, which knows where public text is.

mod passages;

use super::Fault;
use crate::reading::words::line_of;
use crate::tree::Tree;
use passages::Passage;

/// Words that mean one idea, what to write instead, and phrases in which they mean another.
struct Retired {
    words: &'static [&'static str],
    instead: &'static str,
    unless: &'static [&'static str],
}

const fn retired(words: &'static [&'static str], instead: &'static str) -> Retired {
    Retired { words, instead, unless: &[] }
}

impl Retired {
    const fn unless(self, phrases: &'static [&'static str]) -> Self {
        Self { unless: phrases, ..self }
    }

    /// Whether the word at this place of a text is one of these, in its retired meaning.
    fn stands_at(&self, words: &[Word], at: usize) -> bool {
        self.words.contains(&words[at].text.as_str()) && !self.unless.iter().any(|phrase| is_part_of(phrase, words, at))
    }
}

/// Ordinary words that were names of types (ask, found, lot, wish) are not here: in a sentence they
/// mean what they always mean.
const RETIRED: &[Retired] = &[
    retired(&["ring", "rings", "rang", "rung", "ringing"], "wake"),
    retired(&["tell", "tells", "told", "telling"], "send, announce, report or show")
        .unless(&["tell apart", "told apart"]),
    retired(&["hear", "hears", "heard", "hearing", "news"], "receive, hint or wake-up"),
    retired(&["look", "looks", "looked", "looking"], "claim round; for other uses read, search, check").unless(&[
        "look up",
        "looks up",
        "looked up",
        "looking up",
        "look like",
        "looks like",
    ]),
    retired(&["bell", "bells"], "notifier"),
    retired(&["herald", "heralds"], "broadcaster"),
    retired(&["lane", "lanes", "crew", "crews"], "batcher"),
    retired(&["door", "doors"], "interface or API"),
    retired(&["ground", "grounds"], "context"),
    retired(&["head", "heads"], "partition row").unless(&["request head", "request heads", "head of line"]),
    retired(&["fresh"], "has new messages"),
    retired(&["spread", "spreads"], "mark ready").unless(&["spread over", "spread across"]),
    retired(&["watchful", "watchfulness"], "fallback polling"),
    retired(&["pace", "paces"], "poll mode or fallback polling"),
    retired(&["maintenance", "maintain", "maintains", "chore", "chores"], "upkeep").unless(&["maintenance mode"]),
    retired(&["rival", "rivals"], "peer or alternative"),
    retired(&["homeless", "afloat"], "lost claim"),
    retired(&["haul", "hauls"], "claim or batch"),
    retired(&["whoever", "whomever"], "the noun: who it is"),
    retired(&["seeds"], "nothing: what was asked for is in docs/internal"),
];

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    passages::all_in(tree).iter().flat_map(judge).collect()
}

fn judge(passage: &Passage<'_>) -> Vec<Fault> {
    let words = words_of(&passage.text);
    let found = (0..words.len()).filter_map(|at| {
        let retired = RETIRED.iter().find(|retired| retired.stands_at(&words, at))?;
        Some((&words[at], retired.instead))
    });
    found
        .map(|(word, instead)| {
            let line = passage.line + line_of(&passage.text, word.offset) - 1;
            let sentence = format!("uses the retired word {:?}, which only insiders know; write: {instead}", word.text);
            Fault::new(passage.path, line, sentence)
        })
        .collect()
}

/// A word in small letters, and where it stands.
struct Word {
    offset: usize,
    text: String,
}

/// The words of a text. What is joined by `/`, `_`, `::` or a dot is a path or a name, and none.
fn words_of(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    for token in text.split_whitespace() {
        let start = token.as_ptr().addr() - text.as_ptr().addr();
        if is_name(token) {
            continue;
        }
        for word in token.split(|letter: char| !letter.is_alphabetic()).filter(|word| !word.is_empty()) {
            let offset = start + word.as_ptr().addr() - token.as_ptr().addr();
            words.push(Word { offset, text: word.to_lowercase() });
        }
    }
    words
}

fn is_name(token: &str) -> bool {
    let inner = token.trim_matches(|letter: char| !letter.is_alphanumeric());
    inner.contains(['/', '_', '.', '=']) || inner.contains("::")
}

/// Whether the word at this place is where it belongs in this phrase.
fn is_part_of(phrase: &str, words: &[Word], at: usize) -> bool {
    let phrase: Vec<&str> = phrase.split(' ').collect();
    let begins = |n: usize| at.checked_sub(n).and_then(|first| words.get(first..first + phrase.len()));
    (0..phrase.len())
        .filter_map(begins)
        .any(|found| found.iter().map(|word| word.text.as_str()).eq(phrase.iter().copied()))
}

#[cfg(test)]
mod tests;
