//! One answer of the doctor.

use std::error::Error;

use crate::database::error::DatabaseError;

/// How grave it is, mildest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// As it should be.
    Ok,
    /// It works, but an operator should know.
    Warn,
    /// It does not work, or loses work.
    Fail,
}

/// One answer: what was checked, how it is, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What was checked; stable, for programs.
    pub name: &'static str,
    /// How grave it is.
    pub verdict: Verdict,
    /// What is true.
    pub sentence: String,
    /// What to do; empty when nothing is to be done.
    pub remedy: String,
}

impl Finding {
    pub(super) fn ok(name: &'static str, sentence: impl Into<String>) -> Self {
        Self { name, verdict: Verdict::Ok, sentence: sentence.into(), remedy: String::new() }
    }

    pub(super) fn warn(name: &'static str, sentence: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { name, verdict: Verdict::Warn, sentence: sentence.into(), remedy: remedy.into() }
    }

    pub(super) fn fail(name: &'static str, sentence: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { name, verdict: Verdict::Fail, sentence: sentence.into(), remedy: remedy.into() }
    }

    /// From a text of the form "what is true: what to do".
    pub(super) fn from_text(name: &'static str, verdict: Verdict, text: &str, separator: &str) -> Self {
        let (sentence, remedy) = text.split_once(separator).unwrap_or((text, ""));
        Self { name, verdict, sentence: sentence.to_owned(), remedy: remedy.to_owned() }
    }

    pub(super) fn unanswered(name: &'static str, error: &DatabaseError) -> Self {
        let mut finding = Self::from_text(name, Verdict::Fail, &error.to_string(), ": ");
        if let Some(cause) = error.source() {
            finding.sentence = format!("{} ({cause})", finding.sentence);
        }
        finding
    }
}
