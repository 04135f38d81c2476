//! How an attempt ends, in the words of its handler.

use std::fmt::Display;
use std::time::Duration;

use serde::Serialize;

use super::error::JobsError;

/// Longer words are cut.
const CODE_BYTES_MAX: usize = 64;
const MESSAGE_BYTES_MAX: usize = 4096;

/// How an attempt ends.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The job is done.
    Done,
    /// It is done, with a result as JSON that is kept with it. A result larger than
    /// [`args_bytes_max`](super::JobsOptions::args_bytes_max) makes it dead, with the code
    /// `result_too_large`.
    DoneWith(Vec<u8>),
    /// The attempt failed; the job is tried again after its backoff's pause, or is dead if this was
    /// its last attempt.
    Retry(Failure),
    /// The same after a pause of one's own.
    RetryIn(Failure, Duration),
    /// Not now; the attempt does not count.
    Snooze(Duration),
    /// The job is cancelled, for a reason; a long one is cut, at 4096 bytes.
    Cancel(String),
    /// The job cannot succeed: it is dead, whatever attempts it has left.
    Dead(Failure),
}

/// Why an attempt failed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// In one word, for machines.
    pub code: String,
    /// In a sentence, for people.
    pub message: String,
}

impl Failure {
    /// A failure; long words are cut, at 64 and 4096 bytes.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into() }.fitted()
    }

    fn fitted(self) -> Self {
        Self { code: cut(self.code, CODE_BYTES_MAX), message: cut(self.message, MESSAGE_BYTES_MAX) }
    }
}

impl Outcome {
    /// Done, with a result.
    pub fn done_with(result: &impl Serialize) -> Result<Self, JobsError> {
        let bytes = serde_json::to_vec(result).map_err(|source| JobsError::Json { what: "the results", source })?;
        Ok(Self::DoneWith(bytes))
    }

    /// Failed, to be tried again.
    pub fn retry(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Retry(Failure::new(code, message))
    }

    /// Failed for good.
    pub fn dead(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Dead(Failure::new(code, message))
    }

    /// Cut so that it can be recorded, however its parts were made: with a text that PostgreSQL
    /// refuses, the job would run again.
    pub(super) fn fitted(self) -> Self {
        match self {
            Self::Retry(failure) => Self::Retry(failure.fitted()),
            Self::RetryIn(failure, pause) => Self::RetryIn(failure.fitted(), pause),
            Self::Dead(failure) => Self::Dead(failure.fitted()),
            Self::Cancel(reason) => Self::Cancel(cut(reason, MESSAGE_BYTES_MAX)),
            Self::Done | Self::DoneWith(_) | Self::Snooze(_) => self,
        }
    }

    /// Refuses a result of more bytes than a job may keep.
    pub(super) fn check(&self, result_bytes_max: usize) -> Result<(), JobsError> {
        match self {
            Self::DoneWith(result) if result.len() > result_bytes_max => {
                Err(JobsError::TooLarge { what: "the results", bytes: result.len(), limit: result_bytes_max })
            }
            _ => Ok(()),
        }
    }
}

/// What handlers may return: nothing or an [`Outcome`], or a `Result` of either, whose error is a
/// failure with the code `failed`.
pub trait IntoOutcome {
    /// The outcome it stands for.
    fn into_outcome(self) -> Outcome;
}

impl IntoOutcome for () {
    fn into_outcome(self) -> Outcome {
        Outcome::Done
    }
}

impl IntoOutcome for Outcome {
    fn into_outcome(self) -> Outcome {
        self
    }
}

impl<T: IntoOutcome, E: Display> IntoOutcome for Result<T, E> {
    fn into_outcome(self) -> Outcome {
        match self {
            Ok(value) => value.into_outcome(),
            // With its causes, where the error shows them so.
            Err(error) => Outcome::retry("failed", format!("{error:#}")),
        }
    }
}

/// Cut at a character; PostgreSQL's text holds no NUL.
fn cut(text: String, most: usize) -> String {
    let mut text = if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text };
    if text.len() > most {
        let end = (0..=most).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_handlers_return_is_an_outcome() {
        assert_eq!(().into_outcome(), Outcome::Done);
        assert_eq!(Ok::<_, String>(()).into_outcome(), Outcome::Done);
        assert_eq!(Ok::<_, String>(Outcome::Snooze(Duration::ZERO)).into_outcome(), Outcome::Snooze(Duration::ZERO));
        assert_eq!(Err::<(), _>("no").into_outcome(), Outcome::retry("failed", "no"));
    }

    #[test]
    fn an_outcome_made_without_the_constructors_is_made_to_fit_before_it_is_recorded() {
        let failure = Failure { code: "a\0".into(), message: "x".repeat(5000) };
        let fitted = Failure { code: "a\u{fffd}".into(), message: "x".repeat(4096) };

        assert_eq!(Outcome::Dead(failure.clone()).fitted(), Outcome::Dead(fitted.clone()));
        assert_eq!(Outcome::RetryIn(failure, Duration::ZERO).fitted(), Outcome::RetryIn(fitted, Duration::ZERO));
        assert_eq!(Outcome::Cancel("b\0".into()).fitted(), Outcome::Cancel("b\u{fffd}".into()));
        assert_eq!(Outcome::Done.fitted(), Outcome::Done);
    }

    #[test]
    fn long_words_are_cut_at_a_character_and_nul_is_replaced() {
        assert_eq!(
            Failure::new("é".repeat(40), "a\0b"),
            Failure { code: "é".repeat(32), message: "a\u{fffd}b".into() }
        );
    }
}
