//! The states of a job and every way from one to another: one table.
//!
//! Owns [`TRANSITIONS`], from which docs/lifecycle.md is made and against which a test tries every
//! verb in every state. The SQL files state the same from-states as predicates; what is not in the
//! table is refused there.

use std::fmt::{self, Write};

/// What a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// It waits for a time to come: a schedule, a retry, a snooze.
    Scheduled,
    /// It is due and waits for a worker.
    Ready,
    /// A worker holds it; when its lease ends it is ready again.
    Running,
    /// It succeeded.
    Done,
    /// It was cancelled.
    Cancelled,
    /// It failed for good; it can be redriven.
    Dead,
}

impl State {
    /// Every state, in the order of a job's life.
    pub const ALL: [Self; 6] = [Self::Scheduled, Self::Ready, Self::Running, Self::Done, Self::Cancelled, Self::Dead];

    /// As SQL spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Ready => "ready",
            Self::Running => "running",
            Self::Done => "done",
            Self::Cancelled => "cancelled",
            Self::Dead => "dead",
        }
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What can happen to a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verb {
    /// Its time comes.
    FallDue,
    /// A worker takes it.
    Claim,
    /// Its lease ends before it is settled.
    Expire,
    /// Its handler succeeded.
    Complete,
    /// Its handler failed.
    Fail,
    /// Its handler puts it off.
    Snooze,
    /// Its worker gives it back unharmed.
    Release,
    /// Its handler gives it up for good.
    Bury,
    /// A user cancels it.
    Cancel,
    /// A user lets it run now.
    RetryNow,
    /// A user makes it ready again.
    Redrive,
    /// A user changes its priority.
    Reprioritise,
    /// A user deletes it.
    Delete,
}

impl Verb {
    /// Every verb.
    pub const ALL: [Self; 13] = [
        Self::FallDue,
        Self::Claim,
        Self::Expire,
        Self::Complete,
        Self::Fail,
        Self::Snooze,
        Self::Release,
        Self::Bury,
        Self::Cancel,
        Self::RetryNow,
        Self::Redrive,
        Self::Reprioritise,
        Self::Delete,
    ];

    /// In a word or two.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FallDue => "fall due",
            Self::Claim => "claim",
            Self::Expire => "expire",
            Self::Complete => "complete",
            Self::Fail => "fail",
            Self::Snooze => "snooze",
            Self::Release => "release",
            Self::Bury => "bury",
            Self::Cancel => "cancel",
            Self::RetryNow => "retry now",
            Self::Redrive => "redrive",
            Self::Reprioritise => "reprioritise",
            Self::Delete => "delete",
        }
    }

    /// Whether this can happen to a job in that state.
    pub fn is_legal(self, from: State) -> bool {
        TRANSITIONS.iter().any(|step| step.verb == self && step.from == from)
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One way from a state to another.
#[derive(Debug, Clone, Copy)]
pub struct Transition {
    /// What happens.
    pub verb: Verb,
    /// To a job in this state.
    pub from: State,
    /// Which is then in this one; `None` when it is gone.
    pub to: Option<State>,
    /// When, or with what else.
    pub note: &'static str,
}

const fn step(verb: Verb, from: State, to: State, note: &'static str) -> Transition {
    Transition { verb, from, to: Some(to), note }
}

const fn end(from: State) -> Transition {
    Transition { verb: Verb::Delete, from, to: None, note: "with its body and its errors" }
}

/// Every way there is.
pub const TRANSITIONS: &[Transition] = &[
    step(Verb::FallDue, State::Scheduled, State::Ready, "by the database's clock; nothing is written"),
    step(Verb::Claim, State::Ready, State::Running, "counts the attempt, raises the epoch"),
    step(Verb::Claim, State::Ready, State::Dead, "when all attempts are used up: its last worker died with it"),
    step(Verb::Claim, State::Ready, State::Cancelled, "when it was to be cancelled and its last worker was lost"),
    step(
        Verb::Expire,
        State::Running,
        State::Ready,
        "the lease has ended; nothing is written, and until somebody claims it its holder may still settle it",
    ),
    step(Verb::Complete, State::Running, State::Done, "fenced"),
    step(Verb::Fail, State::Running, State::Scheduled, "fenced; after the backoff's pause"),
    step(Verb::Fail, State::Running, State::Dead, "fenced; after the last attempt"),
    step(Verb::Fail, State::Running, State::Cancelled, "fenced; when it was to be cancelled"),
    step(Verb::Snooze, State::Running, State::Scheduled, "fenced; the attempt does not count"),
    step(Verb::Snooze, State::Running, State::Cancelled, "fenced; when it was to be cancelled"),
    step(Verb::Release, State::Running, State::Ready, "fenced; the attempt does not count"),
    step(Verb::Release, State::Running, State::Cancelled, "fenced; when it was to be cancelled"),
    step(Verb::Bury, State::Running, State::Dead, "fenced"),
    step(Verb::Cancel, State::Scheduled, State::Cancelled, ""),
    step(Verb::Cancel, State::Ready, State::Cancelled, ""),
    step(Verb::Cancel, State::Running, State::Running, "its holder is asked to stop, and settles it as cancelled"),
    step(Verb::Cancel, State::Running, State::Cancelled, "by its holder, fenced"),
    step(Verb::RetryNow, State::Scheduled, State::Ready, ""),
    step(Verb::Redrive, State::Dead, State::Ready, "with all its attempts before it"),
    step(Verb::Reprioritise, State::Scheduled, State::Scheduled, ""),
    step(Verb::Reprioritise, State::Ready, State::Ready, ""),
    end(State::Scheduled),
    end(State::Ready),
    end(State::Done),
    end(State::Cancelled),
    end(State::Dead),
];

/// The page of the table.
pub fn lifecycle_page() -> String {
    let mut page = String::from(
        "# The life of a job\n\n\
         Made from the table in `crates/reveille/src/jobs/lifecycle.rs`; a test compares. A transition that is not listed\n\
         is refused by the statement that would make it.\n\n\
         | what happens | to a job that is | which is then | |\n|---|---|---|---|\n",
    );
    for Transition { verb, from, to, note } in TRANSITIONS {
        let to = to.map_or("gone", State::as_str);
        let _ = writeln!(page, "| {verb} | {from} | {to} | {note} |");
    }
    page.push_str(
        "\n*Fenced* means: only by the current holder, with the epoch and nonce of the claim. A former holder gets the answer that\n\
         its lease is lost, and changes nothing. *Scheduled*, *ready* and *running* are rows of `job`, told apart by `due_at` and\n\
         `nonce`; *done*, *cancelled* and *dead* are rows of `job_done`.\n",
    );
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_in_the_documents_is_this_one() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/lifecycle.md");
        let kept = std::fs::read_to_string(path).unwrap_or_default();

        assert!(kept == lifecycle_page(), "docs/lifecycle.md is not current; it should read:\n{}", lifecycle_page());
    }

    #[test]
    fn every_verb_and_state_is_in_the_table() {
        assert!(Verb::ALL.iter().all(|verb| TRANSITIONS.iter().any(|step| step.verb == *verb)));
        assert!(State::ALL.iter().all(|state| TRANSITIONS.iter().any(|step| step.from == *state)));
        assert!(State::ALL.iter().all(|state| State::parse(state.as_str()) == Some(*state)));
    }
}
