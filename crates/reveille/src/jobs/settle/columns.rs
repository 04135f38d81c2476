//! Settlements and the tokens they are fenced by, as the parameters of their statements.

use std::time::Duration;

use super::{Ending, Settlement};
use crate::database::Param;
use crate::jobs::context::JobsContext;
use crate::jobs::id::JobToken;
use crate::jobs::outcome::{Failure, Outcome};

/// What proves that jobs are held: one column for each part of their tokens.
pub(super) struct Fence {
    pub(super) ids: Vec<i64>,
    pub(super) epochs: Vec<i32>,
    pub(super) nonces: Vec<i64>,
}

impl Fence {
    pub(super) fn of<'t>(tokens: impl Iterator<Item = &'t JobToken> + Clone) -> Self {
        Self {
            ids: tokens.clone().map(|token| token.id.0).collect(),
            epochs: tokens.clone().map(|token| token.epoch).collect(),
            nonces: tokens.map(|token| token.nonce).collect(),
        }
    }
}

/// How long each attempt took, in milliseconds.
pub(super) fn took_ms<'s>(jobs: impl Iterator<Item = &'s Settlement>) -> Vec<f64> {
    jobs.map(|job| job.took.as_secs_f64() * 1000.0).collect()
}

/// The parameters of `sql/jobs/settle/rest.sql`.
pub(in crate::jobs) struct Columns<'s> {
    fence: Fence,
    outcomes: Vec<&'static str>,
    delays: Vec<Option<f64>>,
    codes: Vec<Option<&'s str>>,
    messages: Vec<Option<&'s str>>,
    took_ms: Vec<f64>,
    results: Vec<Option<&'s [u8]>>,
    keep: f64,
    keep_dead: Option<f64>,
}

impl<'s> Columns<'s> {
    pub(in crate::jobs) fn of(jobs: &[&'s Settlement], context: &JobsContext) -> Self {
        let mut columns = Self {
            fence: Fence::of(jobs.iter().map(|job| &job.token)),
            outcomes: Vec::with_capacity(jobs.len()),
            delays: Vec::with_capacity(jobs.len()),
            codes: Vec::with_capacity(jobs.len()),
            messages: Vec::with_capacity(jobs.len()),
            took_ms: took_ms(jobs.iter().copied()),
            results: Vec::with_capacity(jobs.len()),
            keep: context.options.keep_done.as_secs_f64(),
            keep_dead: context.options.keep_dead.map(|keep| keep.as_secs_f64()),
        };
        for job in jobs {
            columns.push(&job.ending);
        }
        columns
    }

    fn push(&mut self, ending: &'s Ending) {
        let Row { outcome, delay_s, code, message, result } = Row::of(ending);
        self.outcomes.push(outcome);
        self.delays.push(delay_s);
        self.codes.push(code);
        self.messages.push(message);
        self.results.push(result);
    }

    pub(in crate::jobs) fn params(&self) -> [Param<'_>; 11] {
        [
            &self.fence.ids,
            &self.fence.epochs,
            &self.fence.nonces,
            &self.outcomes,
            &self.delays,
            &self.codes,
            &self.messages,
            &self.took_ms,
            &self.results,
            &self.keep,
            &self.keep_dead,
        ]
    }
}

/// One ending, in the words of `sql/functions/settle_jobs.sql`.
struct Row<'s> {
    outcome: &'static str,
    delay_s: Option<f64>,
    code: Option<&'s str>,
    message: Option<&'s str>,
    result: Option<&'s [u8]>,
}

impl<'s> Row<'s> {
    fn of(ending: &'s Ending) -> Self {
        let outcome = match ending {
            Ending::By(outcome) => outcome,
            Ending::Release => return Self::without_words("release"),
            Ending::Park(note, delay) => {
                let (delay_s, message) = (Some(in_seconds(*delay)), Some(&**note));
                return Self { delay_s, message, ..Self::without_words("snooze") };
            }
        };
        match outcome {
            Outcome::Done => Self::without_words("done"),
            Outcome::DoneWith(result) => Self { result: Some(result), ..Self::without_words("done") },
            Outcome::Retry(failure) => Self::failed("retry", failure),
            Outcome::RetryIn(failure, delay) => {
                Self { delay_s: Some(in_seconds(*delay)), ..Self::failed("retry", failure) }
            }
            Outcome::Snooze(delay) => Self { delay_s: Some(in_seconds(*delay)), ..Self::without_words("snooze") },
            Outcome::Cancel(reason) => {
                Self { code: Some("cancelled"), message: Some(reason), ..Self::without_words("cancelled") }
            }
            Outcome::Dead(failure) => Self::failed("dead", failure),
        }
    }

    fn without_words(outcome: &'static str) -> Self {
        Self { outcome, delay_s: None, code: None, message: None, result: None }
    }

    fn failed(outcome: &'static str, failure: &'s Failure) -> Self {
        Self { code: Some(&failure.code), message: Some(&failure.message), ..Self::without_words(outcome) }
    }
}

/// A century is for ever, and fits into an interval.
fn in_seconds(delay: Duration) -> f64 {
    delay.as_secs_f64().min(3.2e9)
}
