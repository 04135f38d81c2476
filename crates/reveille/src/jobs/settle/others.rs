//! Renewals, and every settlement that is no completion.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::columns::{Columns, Fence};
use super::report::report;
use super::{Ending, Renewed, Settled, Settlement, may_repeat};
use crate::batcher::{Failed, Work};
use crate::database::{Connection, DatabaseError};
use crate::jobs::context::JobsContext;
use crate::jobs::id::JobToken;
use crate::jobs::lifecycle::State;
use crate::jobs::outcome::Outcome;
use crate::jobs::statements::{RENEW, SETTLE};

#[derive(Debug)]
pub(super) enum Request {
    Settle(Settlement),
    Renew(JobToken, Duration),
}

impl Request {
    fn settlement(&self) -> Option<&Settlement> {
        match self {
            Self::Settle(settlement) => Some(settlement),
            Self::Renew(..) => None,
        }
    }
}

#[derive(Debug)]
pub(super) enum Answer {
    Settled(Settled),
    Renewed(Renewed),
}

/// The batcher's work.
#[derive(Debug)]
pub(super) struct Others {
    pub(super) context: Arc<JobsContext>,
}

impl Work for Others {
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

    async fn run(
        &self,
        connection: &mut Connection,
        mut requests: Vec<Request>,
    ) -> Result<Vec<Answer>, Failed<Request>> {
        // Renewals go first: a lease must not end because settlements were busy, and a failure here
        // has settled nothing.
        let renewed = match renew(connection, &requests).await {
            Ok(renewed) => renewed,
            Err(error) => return Err((error, requests)),
        };
        match self.settle(connection, &requests).await {
            Ok(settled) => Ok(in_order(&requests, renewed, settled)),
            Err(error) => {
                for request in &mut requests {
                    if let Request::Settle(job) = request {
                        job.note_interruption(&error);
                    }
                }
                Err((error, requests))
            }
        }
    }
}

impl Others {
    /// Settles; the results are in the order of the settlements among the requests.
    async fn settle(&self, connection: &Connection, requests: &[Request]) -> Result<Vec<Settled>, DatabaseError> {
        let jobs: Vec<&Settlement> = requests.iter().filter_map(Request::settlement).collect();
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        let rows = connection.query(&SETTLE, &Columns::of(&jobs, &self.context).params()).await?;
        let settled = jobs.into_iter().zip(rows).map(|(job, row)| {
            let settled = job.settled(row.get::<_, &str>("said") == "recorded");
            report(&self.context, job, settled, row.get::<_, Option<&str>>("state").and_then(State::parse));
            if let Some(due) = row.get::<_, Option<f64>>("due_s") {
                self.context.notifier.ready_after(&job.queue, Duration::from_secs_f64(due.clamp(0.0, 1e9)));
            }
            settled
        });
        Ok(settled.collect())
    }
}

/// Renews; the results are in the order of the renewals among the requests.
async fn renew(connection: &Connection, requests: &[Request]) -> Result<Vec<Renewed>, DatabaseError> {
    // Workers of one process may have chosen different leases, and their renewals are sent
    // together.
    let renewal = |request: &Request| match request {
        Request::Renew(token, lease) => Some((*token, lease.as_secs_f64())),
        Request::Settle(_) => None,
    };
    let (tokens, leases): (Vec<JobToken>, Vec<f64>) = requests.iter().filter_map(renewal).unzip();
    if tokens.is_empty() {
        return Ok(Vec::new());
    }
    let Fence { ids, epochs, nonces } = Fence::of(tokens.iter());
    let rows = connection.query(&RENEW, &[&ids, &epochs, &nonces, &leases]).await?;
    let renewed = |row: &tokio_postgres::Row| {
        let renewed = Renewed { lost: row.get("lost"), cancel_requested: row.get("cancel_requested") };
        (row.get("id"), renewed)
    };
    let known: HashMap<i64, Renewed> = rows.iter().map(renewed).collect();
    Ok(ids.iter().map(|id| known.get(id).copied().unwrap_or_default()).collect())
}

/// The results as answers, in the order of the requests.
fn in_order(requests: &[Request], renewed: Vec<Renewed>, settled: Vec<Settled>) -> Vec<Answer> {
    let (mut renewed, mut settled) = (renewed.into_iter(), settled.into_iter());
    let answer = |request: &Request| match request {
        Request::Renew(..) => Answer::Renewed(renewed.next().unwrap_or_default()),
        Request::Settle(_) => Answer::Settled(settled.next().unwrap_or(Settled::LeaseLost)),
    };
    requests.iter().map(answer).collect()
}
