//! From a handler's outcome to the row that records it.
//!
//! Owns the batchers of settlements and renewals, with connections of their own, so that neither
//! waits for claims. Promises that a settlement is durable and fenced: a job that was claimed by
//! another worker meanwhile is left alone, and that is a value. Completions, by far the most, have
//! a batcher and a statement of their own; all other settlements and the renewals share another.
//!
//! Next: `complete` and `others`, the work of the two batchers; `columns` (their parameters);
//! `report` (what observers see).

mod columns;
mod complete;
mod others;
mod report;

use std::sync::Arc;
use std::time::Duration;

use tracing::error;

use super::context::JobsContext;
use super::event::About;
use super::id::JobToken;
use super::outcome::Outcome;
use super::ready::Queue;
use crate::batcher::Batcher;
use crate::database::DatabaseError;
pub(super) use columns::Columns;
use complete::Complete;
use others::{Answer, Others, Request};

/// Attempts at a batch: enough to go on after the end of a lease, when a job may still be settled.
const ATTEMPTS: u32 = 40;

/// How an attempt ends, by its handler or its worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ending {
    By(Outcome),
    /// Given back unharmed.
    Release,
    /// Put off because this worker cannot do it; uncharged.
    Park(String, Duration),
}

/// One job, and how its attempt ended.
#[derive(Debug)]
pub(super) struct Settlement {
    pub(super) token: JobToken,
    pub(super) about: About,
    pub(super) queue: Queue,
    pub(super) ending: Ending,
    pub(super) took: Duration,
    /// Whether it is expected to be settled already, by the handler's own transaction.
    pub(super) or_lost: bool,
    /// Whether an earlier attempt to record it may have done so.
    pub(super) interrupted: bool,
}

impl Settlement {
    /// Notes that an attempt to record it ended in this error.
    fn note_interruption(&mut self, error: &DatabaseError) {
        self.interrupted |= may_have_happened(error);
    }

    /// Its result, by whether the statement recorded it. A second try that finds the job gone
    /// assumes that the first one succeeded.
    fn settled(&self, is_recorded: bool) -> Settled {
        if is_recorded || self.interrupted { Settled::Recorded } else { Settled::LeaseLost }
    }
}

/// The result of a settlement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// It is recorded.
    Recorded,
    /// Another worker has the job, or it has ended: nothing was changed.
    LeaseLost,
}

/// The result of a renewal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Renewed {
    pub(super) lost: bool,
    pub(super) cancel_requested: bool,
}

/// The two batchers: completions, and everything else.
#[derive(Debug)]
pub(super) struct Settler {
    done: Batcher<Complete>,
    others: Batcher<Others>,
}

impl Settler {
    pub(super) fn new(context: &Arc<JobsContext>) -> Self {
        let complete = Complete { context: Arc::clone(context) };
        let others = Others { context: Arc::clone(context) };
        Self {
            done: context.batcher("complete", 1024, ATTEMPTS, complete),
            others: context.batcher("settle", 1024, ATTEMPTS, others),
        }
    }

    /// Record how an attempt ended.
    pub(super) async fn settle_one(&self, settlement: Settlement) -> Option<Settled> {
        if settlement.ending == Ending::By(Outcome::Done) {
            return recorded(self.done.send(vec![settlement]).await.pop());
        }
        match self.others.send(vec![Request::Settle(settlement)]).await.pop() {
            Some(Ok(Answer::Renewed(_))) | None => None,
            Some(Ok(Answer::Settled(settled))) => Some(settled),
            Some(Err(error)) => recorded(Some(Err(error))),
        }
    }

    /// Give jobs back unharmed, or settle them otherwise than by completion.
    pub(super) async fn settle_many(&self, settlements: Vec<Settlement>) {
        if settlements.is_empty() {
            return;
        }
        for answer in self.others.send(settlements.into_iter().map(Request::Settle).collect()).await {
            recorded(Some(answer.map(|_| Settled::Recorded)));
        }
    }

    /// Renew the leases of jobs.
    pub(super) async fn renew(&self, held: Vec<JobToken>, lease: Duration) -> Result<Vec<Renewed>, DatabaseError> {
        let answers = self.others.send(held.into_iter().map(|token| Request::Renew(token, lease)).collect()).await;
        let renewed = |answer| match answer {
            Ok(Answer::Renewed(renewed)) => Ok(renewed),
            Ok(Answer::Settled(_)) => Ok(Renewed::default()),
            Err(error) => Err(error),
        };
        answers.into_iter().map(renewed).collect()
    }
}

fn recorded(answer: Option<Result<Settled, DatabaseError>>) -> Option<Settled> {
    match answer? {
        Ok(settled) => Some(settled),
        Err(error) => {
            error!(%error, "could not record how an attempt ended: the job will run again when its lease ends");
            None
        }
    }
}

/// The fence makes a second try harmless.
fn may_repeat(error: &DatabaseError) -> bool {
    error.is_transient() || matches!(error, DatabaseError::UnknownOutcome { .. })
}

/// Whether the settlement may be recorded in spite of the error; one that was refused is not.
fn may_have_happened(error: &DatabaseError) -> bool {
    let refused = matches!(
        error,
        DatabaseError::Unreachable { .. } | DatabaseError::ReadOnly { .. } | DatabaseError::Transient { .. }
    );
    may_repeat(error) && !refused
}
