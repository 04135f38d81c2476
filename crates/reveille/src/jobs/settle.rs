//! From a handler's outcome to the row that records it.
//!
//! Owns the batchers of settlements and renewals, with connections of their own, so that neither
//! waits for claims. Promises that a settlement is durable and fenced: a job that was claimed by
//! another worker meanwhile is left alone, and that is a value. Completions, by far the most, have
//! a batcher and a statement of their own; all other settlements and the renewals share another.
//!
//! Next: [`super::worker`], whose slots send here.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use tracing::error;

use super::context::JobsContext;
use super::event::{About, JobEvent};
use super::id::JobToken;
use super::lifecycle::State;
use super::outcome::{Failure, Outcome};
use super::ready::Queue;
use super::statements::{COMPLETE, RENEW, SETTLE};
use crate::batcher::{Batcher, Failed, Work};
use crate::database::{Connection, DatabaseError, Param};

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
    others: Batcher<Settle>,
}

impl Settler {
    pub(super) fn new(context: &Arc<JobsContext>) -> Self {
        let (done, others) = (Complete { context: Arc::clone(context) }, Settle { context: Arc::clone(context) });
        let (done, others) =
            (context.batcher("complete", 1024, ATTEMPTS, done), context.batcher("settle", 1024, ATTEMPTS, others));
        Self { done, others }
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

/// Completions: by far the most settlements, and all alike.
#[derive(Debug)]
struct Complete {
    context: Arc<JobsContext>,
}

impl Work for Complete {
    type Item = Settlement;
    type Answer = Settled;
    type Error = DatabaseError;

    fn weight(_: &Settlement) -> usize {
        256
    }

    fn may_repeat(error: &DatabaseError) -> bool {
        may_repeat(error)
    }

    async fn run(
        &self,
        connection: &mut Connection,
        mut done: Vec<Settlement>,
    ) -> Result<Vec<Settled>, Failed<Settlement>> {
        match self.complete(connection, &done).await {
            Ok(settled) => Ok(settled),
            Err(error) => {
                for job in &mut done {
                    job.interrupted |= may_have_happened(&error);
                }
                Err((error, done))
            }
        }
    }
}

impl Complete {
    async fn complete(&self, connection: &Connection, done: &[Settlement]) -> Result<Vec<Settled>, DatabaseError> {
        let ids: Vec<i64> = done.iter().map(|job| job.token.id.0).collect();
        let epochs: Vec<i32> = done.iter().map(|job| job.token.epoch).collect();
        let nonces: Vec<i64> = done.iter().map(|job| job.token.nonce).collect();
        let took: Vec<f64> = done.iter().map(|job| job.took.as_secs_f64() * 1000.0).collect();
        let keep = self.context.options.keep_done.as_secs_f64();
        let rows = connection.query(&COMPLETE, &[&ids, &epochs, &nonces, &took, &keep]).await?;
        let recorded_ids: HashSet<i64> = rows.iter().map(|row| row.get("id")).collect();
        let settled = |job: &Settlement| {
            // A second try that finds the job gone assumes that the first one succeeded.
            let recorded = job.interrupted || recorded_ids.contains(&job.token.id.0);
            let settled = if recorded { Settled::Recorded } else { Settled::LeaseLost };
            report(&self.context, job, settled, Some(State::Done));
            settled
        };
        Ok(done.iter().map(settled).collect())
    }
}

#[derive(Debug)]
enum Request {
    Settle(Settlement),
    Renew(JobToken, Duration),
}

#[derive(Debug)]
enum Answer {
    Settled(Settled),
    Renewed(Renewed),
}

/// Everything else.
#[derive(Debug)]
struct Settle {
    context: Arc<JobsContext>,
}

impl Work for Settle {
    type Item = Request;
    type Answer = Answer;
    type Error = DatabaseError;

    fn weight(request: &Request) -> usize {
        match request {
            Request::Settle(Settlement { ending: Ending::By(Outcome::DoneWith(result)), .. }) => result.len() + 256,
            Request::Settle(_) | Request::Renew(..) => 256,
        }
    }

    fn may_repeat(error: &DatabaseError) -> bool {
        may_repeat(error)
    }

    async fn run(&self, connection: &mut Connection, mut items: Vec<Request>) -> Result<Vec<Answer>, Failed<Request>> {
        let mut answers: Vec<Answer> = items.iter().map(|_| Answer::Settled(Settled::LeaseLost)).collect();
        // Renewals go first: a lease must not end because settlements were busy, and a failure here
        // has settled nothing.
        if let Err(error) = self.renew(connection, &items, &mut answers).await {
            return Err((error, items));
        }
        if let Err(error) = self.settle(connection, &items, &mut answers).await {
            for item in &mut items {
                if let Request::Settle(job) = item {
                    job.interrupted |= may_have_happened(&error);
                }
            }
            return Err((error, items));
        }
        Ok(answers)
    }
}

/// Attempts at a batch: enough to go on after the end of a lease, when a job may still be settled.
const ATTEMPTS: u32 = 40;

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

impl Settle {
    async fn settle(
        &self,
        connection: &Connection,
        items: &[Request],
        answers: &mut [Answer],
    ) -> Result<(), DatabaseError> {
        let settlements = items.iter().zip(answers).filter_map(|(item, answer)| match item {
            Request::Settle(job) => Some((job, answer)),
            Request::Renew(..) => None,
        });
        let (jobs, answers): (Vec<&Settlement>, Vec<&mut Answer>) = settlements.unzip();
        if jobs.is_empty() {
            return Ok(());
        }
        let rows = connection.query(&SETTLE, &Columns::of(&jobs, &self.context).params()).await?;
        for ((job, answer), row) in jobs.into_iter().zip(answers).zip(rows) {
            let recorded = job.interrupted || row.get::<_, &str>("said") == "recorded";
            let settled = if recorded { Settled::Recorded } else { Settled::LeaseLost };
            *answer = Answer::Settled(settled);
            report(&self.context, job, settled, row.get::<_, Option<&str>>("state").and_then(State::parse));
            if let Some(due) = row.get::<_, Option<f64>>("due_s") {
                self.context.notifier.ready_after(&job.queue, Duration::from_secs_f64(due.clamp(0.0, 1e9)));
            }
        }
        Ok(())
    }

    async fn renew(
        &self,
        connection: &Connection,
        items: &[Request],
        answers: &mut [Answer],
    ) -> Result<(), DatabaseError> {
        let held: Vec<(&JobToken, &Duration, &mut Answer)> = items
            .iter()
            .zip(answers)
            .filter_map(|(item, answer)| match item {
                Request::Renew(token, lease) => Some((token, lease, answer)),
                Request::Settle(_) => None,
            })
            .collect();
        if held.is_empty() {
            return Ok(());
        }
        let ids: Vec<i64> = held.iter().map(|(token, ..)| token.id.0).collect();
        let epochs: Vec<i32> = held.iter().map(|(token, ..)| token.epoch).collect();
        let nonces: Vec<i64> = held.iter().map(|(token, ..)| token.nonce).collect();
        // Workers of one process may have chosen different leases, and their renewals are sent
        // together.
        let leases: Vec<f64> = held.iter().map(|(_, lease, _)| lease.as_secs_f64()).collect();
        let rows = connection.query(&RENEW, &[&ids, &epochs, &nonces, &leases]).await?;
        let known: HashMap<i64, Renewed> = rows
            .iter()
            .map(|row| {
                let renewed = Renewed { lost: row.get("lost"), cancel_requested: row.get("cancel_requested") };
                (row.get("id"), renewed)
            })
            .collect();
        for (token, _, answer) in held {
            *answer = Answer::Renewed(known.get(&token.id.0).copied().unwrap_or_default());
        }
        Ok(())
    }
}

fn report(context: &JobsContext, job: &Settlement, settled: Settled, state: Option<State>) {
    let about = job.about.clone();
    let event = match (settled, &job.ending, state) {
        (Settled::LeaseLost, ..) if job.or_lost => return,
        (Settled::LeaseLost, ..) => JobEvent::LeaseLost { job: about },
        (Settled::Recorded, Ending::By(outcome), state) => match (outcome, state.unwrap_or(State::Done)) {
            (Outcome::Done | Outcome::DoneWith(_), _) => JobEvent::Completed { job: about, took: job.took },
            (
                Outcome::Retry(failure) | Outcome::RetryIn(failure, _) | Outcome::Dead(failure),
                state @ (State::Scheduled | State::Dead),
            ) => {
                let Failure { code, message } = failure.clone();
                JobEvent::Failed { job: about, code, message, state, took: job.took }
            }
            (_, state) => JobEvent::Settled { job: about, state },
        },
        (Settled::Recorded, _, state) => JobEvent::Settled { job: about, state: state.unwrap_or(State::Scheduled) },
    };
    context.reporter.emit(&event);
}

/// Settlements as arrays, one for each column.
pub(super) struct Columns<'s> {
    ids: Vec<i64>,
    epochs: Vec<i32>,
    nonces: Vec<i64>,
    outcomes: Vec<&'static str>,
    delays: Vec<Option<f64>>,
    codes: Vec<Option<&'s str>>,
    messages: Vec<Option<&'s str>>,
    took: Vec<f64>,
    results: Vec<Option<&'s [u8]>>,
    keep: f64,
    keep_dead: Option<f64>,
}

impl<'s> Columns<'s> {
    pub(super) fn of(jobs: &[&'s Settlement], context: &JobsContext) -> Self {
        let mut columns = Self {
            ids: jobs.iter().map(|job| job.token.id.0).collect(),
            epochs: jobs.iter().map(|job| job.token.epoch).collect(),
            nonces: jobs.iter().map(|job| job.token.nonce).collect(),
            outcomes: Vec::with_capacity(jobs.len()),
            delays: Vec::with_capacity(jobs.len()),
            codes: Vec::with_capacity(jobs.len()),
            messages: Vec::with_capacity(jobs.len()),
            took: jobs.iter().map(|job| job.took.as_secs_f64() * 1000.0).collect(),
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
        let (outcome, delay) = match ending {
            Ending::By(Outcome::Done | Outcome::DoneWith(_)) => ("done", None),
            Ending::By(Outcome::Retry(_)) => ("retry", None),
            Ending::By(Outcome::RetryIn(_, delay)) => ("retry", Some(*delay)),
            Ending::By(Outcome::Snooze(delay)) | Ending::Park(_, delay) => ("snooze", Some(*delay)),
            Ending::By(Outcome::Cancel(_)) => ("cancelled", None),
            Ending::By(Outcome::Dead(_)) => ("dead", None),
            Ending::Release => ("release", None),
        };
        let (code, message) = match ending {
            Ending::By(Outcome::Retry(failure) | Outcome::RetryIn(failure, _) | Outcome::Dead(failure)) => {
                (Some(&*failure.code), Some(&*failure.message))
            }
            Ending::By(Outcome::Cancel(reason)) => (Some("cancelled"), Some(&**reason)),
            Ending::Park(note, _) => (None, Some(&**note)),
            Ending::By(_) | Ending::Release => (None, None),
        };
        let result = if let Ending::By(Outcome::DoneWith(result)) = ending { Some(&**result) } else { None };
        self.outcomes.push(outcome);
        // A century is for ever, and fits into an interval.
        self.delays.push(delay.map(|delay| delay.as_secs_f64().min(3.2e9)));
        self.codes.push(code);
        self.messages.push(message);
        self.results.push(result);
    }

    pub(super) fn params(&self) -> [Param<'_>; 11] {
        [
            &self.ids,
            &self.epochs,
            &self.nonces,
            &self.outcomes,
            &self.delays,
            &self.codes,
            &self.messages,
            &self.took,
            &self.results,
            &self.keep,
            &self.keep_dead,
        ]
    }
}
