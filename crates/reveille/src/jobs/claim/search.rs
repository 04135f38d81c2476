//! One worker's part of a claim round.
//!
//! Owns which queues a statement claims from, and what the rows show about each of them. Promises
//! that a queue which had too few jobs counts as exhausted only after its next due time was read,
//! or with the time after which it may be read. Gives no job back: a failed search keeps those it
//! found, for the round to give back.
//!
//! Next: `shares` (slots for each queue), `marks` (where a claim begins to read), `rows` (what it
//! returned), `next_due` (of queues with too few jobs), `give_back`.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_postgres::Row;

use super::give_back::Release;
use super::low_water::Cost;
use super::rows::{about, claimed};
use super::shares::{Found, Quota, shares};
use super::{ClaimSource, Claimed};
use crate::database::{Connection, DatabaseError, Param, Purpose};
use crate::jobs::event::JobEvent;
use crate::jobs::lifecycle::State;
use crate::jobs::ready::Queue;
use crate::jobs::statements::TAKE;
use crate::jobs::worker::{Claiming, WorkerState};
use crate::service::lost_claims::SentClaim;

/// What is searched for one worker, and what was found.
pub(super) struct Search<'s> {
    worker: &'s WorkerState,
    /// While it lives, a drain of the worker waits.
    claiming: Claiming,
    /// The queues that were woken.
    pub(super) queues: Vec<Queue>,
    /// Of these, the ones that are claimed from only if the read of their next due time finds a
    /// due job.
    pub(super) deferred: Vec<Queue>,
    pub(super) jobs: Vec<Claimed>,
    /// The queues that have no more jobs for now.
    pub(super) exhausted: HashMap<Queue, Exhausted>,
}

/// Why a queue has no more jobs to claim now.
#[derive(Debug, Clone, Copy)]
pub(super) enum Exhausted {
    /// No job is due. After `next`, if any, one is, or its due time may be read.
    NoneDue { next: Option<Duration> },
    /// It has due jobs that could not be claimed now; after `next`, if any, another is due.
    Contended { next: Option<Duration> },
    /// An earlier demand of this round filled the worker: there may be more jobs, but there is no
    /// room now.
    NoRoom,
}

impl Exhausted {
    /// After what time it is to be claimed from again.
    pub(super) fn next(self) -> Option<Duration> {
        match self {
            Self::NoneDue { next } | Self::Contended { next } => next,
            Self::NoRoom => None,
        }
    }
}

impl<'s> Search<'s> {
    pub(super) fn new(worker: &'s Arc<WorkerState>, queues: Vec<Queue>, deferred: Vec<Queue>) -> Self {
        let claiming = Claiming::of(worker);
        Self { worker, claiming, queues, deferred, jobs: Vec::new(), exhausted: HashMap::new() }
    }

    fn no_room(&mut self) {
        self.exhausted.extend(self.queues.iter().map(|queue| (Arc::clone(queue), Exhausted::NoRoom)));
    }

    /// The queues that may have jobs.
    fn open(&self) -> Vec<Queue> {
        self.queues.iter().filter(|queue| !self.exhausted.contains_key(*queue)).cloned().collect()
    }
}

/// One claim statement.
struct Take<'q> {
    quotas: &'q [Quota],
    /// Of all queues together.
    most: usize,
    nonce: i64,
    began: Instant,
}

impl ClaimSource {
    /// Claims until there are as many jobs as wanted, or no more.
    pub(super) async fn search(
        &self,
        kept: &mut Option<Connection>,
        search: &mut Search<'_>,
    ) -> Result<(), DatabaseError> {
        let connection = self.connection(kept).await?;
        let want = search.worker.want();
        if want == 0 {
            search.no_room();
            return Ok(());
        }
        self.read_deferred(connection, search).await?;
        let mut open = search.open();
        while search.jobs.len() < want && !open.is_empty() {
            let left = want - search.jobs.len();
            let quotas = shares(&open, left, |queue| search.worker.weight(queue));
            let found = self.take(connection, search, &quotas, left).await?;
            let (filled, short) = found.filled_and_short();
            if found.total() < left {
                self.follow_up(connection, search, short).await?;
            }
            open = filled;
        }
        Ok(())
    }

    /// The connection of earlier rounds, unless it broke.
    async fn connection<'k>(&self, kept: &'k mut Option<Connection>) -> Result<&'k Connection, DatabaseError> {
        let connection = match kept.take().filter(|connection| !connection.is_closed()) {
            Some(connection) => connection,
            None => self.context.database.connection(Purpose::Dedicated("claim")).await?,
        };
        Ok(kept.insert(connection))
    }

    /// One claim, of at most `left` jobs.
    async fn take<'q>(
        &self,
        connection: &Connection,
        search: &mut Search<'_>,
        quotas: &'q [Quota],
        left: usize,
    ) -> Result<Found<'q>, DatabaseError> {
        let take = Take { quotas, most: left, nonce: fastrand::i64(..), began: Instant::now() };
        let sent = SentClaim::new(&self.context.service, self.release(search, quotas), vec![take.nonce]);
        let rows = self.send(connection, search.worker, &take).await?;
        sent.received_except(Vec::new());
        let cost = Cost { began: take.began, took: take.began.elapsed(), rows: rows.len() };
        let found = self.add(search, &rows, &take);
        self.marks.claimed(quotas, &search.jobs, cost);
        for queue in found.queues() {
            self.context.notifier.leased(queue, search.worker.lease);
        }
        Ok(found)
    }

    /// How the jobs of a claim are given back if its answer is lost.
    fn release(&self, search: &Search<'_>, quotas: &[Quota]) -> Release {
        let queues = quotas.iter().map(|quota| quota.queue.to_string()).collect();
        Release { context: Arc::clone(&self.context), claiming: search.claiming.clone(), queues }
    }

    async fn send(
        &self,
        connection: &Connection,
        worker: &WorkerState,
        take: &Take<'_>,
    ) -> Result<Vec<Row>, DatabaseError> {
        let Take { quotas, most, nonce, began } = take;
        let names: Vec<&str> = quotas.iter().map(|quota| &*quota.queue).collect();
        let limits: Vec<i32> = quotas.iter().map(|quota| size(quota.most)).collect();
        let (times, ids) = self.marks.choose_begins(*began, quotas);
        let (want, lease) = (i64::from(size(*most)), worker.lease.as_secs_f64());
        let options = &self.context.options;
        let (keep, keep_dead) = (options.keep_done.as_secs_f64(), options.keep_dead.map(|keep| keep.as_secs_f64()));
        let params: [Param<'_>; 10] =
            [&names, &limits, &times, &ids, &want, &&*worker.name, nonce, &lease, &keep, &keep_dead];
        connection.query(&TAKE, &params).await
    }

    /// Adds the claimed jobs to the search. Jobs that the claim ended, because their attempts are
    /// used up or they were to be cancelled, are reported.
    fn add<'q>(&self, search: &mut Search<'_>, rows: &[Row], take: &Take<'q>) -> Found<'q> {
        let mut found = Found::nothing(take.quotas);
        for row in rows {
            let (name, ended): (&str, Option<&str>) = (row.get("queue"), row.get("ended"));
            let Some(queue) = found.count(name) else { continue };
            match ended.and_then(State::parse) {
                Some(state) => self.context.reporter.emit(&JobEvent::Ended { job: about(row, queue), state }),
                None => search.jobs.push(claimed(row, queue, take.nonce, &search.claiming)),
            }
        }
        found
    }
}

fn size(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
