//! One worker's part of a claim round.
//!
//! Owns which queues a statement claims from, and what the rows show about each of them. Promises
//! that a queue which had too few jobs counts as exhausted only after its next due time was read,
//! or with the time after which it may be read. Gives no job back: a failed search keeps those it
//! found, for the round to give back.
//!
//! Next: `shares` (slots for each queue), `low_water` (where a claim begins to read), `rows` (what
//! it returned), `give_back`.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use reveille_wake::{Cause, WokenKey};
use tokio_postgres::Row;

use super::give_back::Release;
use super::low_water::{Cost, LowWater, PRIORITIES};
use super::rows::{about, claimed};
use super::shares::{Found, Quota, shares};
use super::{ClaimSource, Claimed};
use crate::database::{Connection, DatabaseError, Param, Purpose};
use crate::jobs::event::JobEvent;
use crate::jobs::lifecycle::State;
use crate::jobs::ready::Queue;
use crate::jobs::statements::{NEXT, TAKE};
use crate::jobs::worker::{Claiming, WorkerState};
use crate::service::lost_claims::SentClaim;

/// What is searched for one worker, and what was found.
pub(super) struct Search<'s> {
    worker: &'s WorkerState,
    /// While it lives, a drain of the worker waits.
    claiming: Claiming,
    /// The queues that were woken.
    pub(super) queues: Vec<Queue>,
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
    pub(super) fn new(worker: &'s Arc<WorkerState>, queues: Vec<Queue>) -> Self {
        Self { worker, claiming: Claiming::of(worker), queues, jobs: Vec::new(), exhausted: HashMap::new() }
    }

    fn no_room(&mut self) {
        self.exhausted.extend(self.queues.iter().map(|queue| (Arc::clone(queue), Exhausted::NoRoom)));
    }

    /// The queues that may have jobs.
    fn open(&self) -> Vec<Queue> {
        self.queues.iter().filter(|queue| !self.exhausted.contains_key(*queue)).cloned().collect()
    }
}

impl ClaimSource {
    /// Of the woken keys, those that are in this round only because the last one deferred reading
    /// their next due time.
    pub(super) fn take_deferred<'r>(&self, woken: impl Iterator<Item = &'r WokenKey<Queue>>) -> Vec<Queue> {
        let mut deferred = self.deferred();
        let only =
            woken.filter(|woken| deferred.remove(&woken.key) && matches!(woken.cause, Cause::More | Cause::Started));
        only.map(|woken| Arc::clone(&woken.key)).collect()
    }

    /// Claims until there are as many jobs as wanted, or no more. A deferred queue is claimed from
    /// only if the read of its next due time finds a due job.
    pub(super) async fn search(
        &self,
        kept: &mut Option<Connection>,
        search: &mut Search<'_>,
        deferred: &[Queue],
    ) -> Result<(), DatabaseError> {
        let connection = self.connection(kept).await?;
        let want = search.worker.want();
        if want == 0 {
            search.no_room();
            return Ok(());
        }
        self.read_deferred(connection, search, deferred).await?;
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

    /// Reads the next due times that the last round deferred.
    async fn read_deferred(
        &self,
        connection: &Connection,
        search: &mut Search<'_>,
        deferred: &[Queue],
    ) -> Result<(), DatabaseError> {
        // While reads of a queue rest, its next due time cannot be read, and only a claim finds
        // jobs that were added since.
        let readable: Vec<Queue> = deferred.iter().filter(|queue| self.rest(queue).is_zero()).cloned().collect();
        if readable.is_empty() {
            return Ok(());
        }
        self.read_next_due(connection, search, &readable).await?;
        // A job that is due was added since the last round, or is locked: its queue is claimed from
        // after all.
        search.exhausted.retain(|_, exhausted| matches!(exhausted, Exhausted::NoneDue { .. }));
        Ok(())
    }

    /// Queues have no more jobs, and there is room left: when is the next one due? If there are
    /// jobs to start, they start first: these queues count as having more, and the next round reads
    /// it, while the jobs run.
    async fn follow_up(
        &self,
        connection: &Connection,
        search: &mut Search<'_>,
        short: Vec<Queue>,
    ) -> Result<(), DatabaseError> {
        if search.jobs.is_empty() {
            return self.read_next_due(connection, search, &short).await;
        }
        self.deferred().extend(short);
        Ok(())
    }

    /// One claim, of at most `left` jobs.
    async fn take<'q>(
        &self,
        connection: &Connection,
        search: &mut Search<'_>,
        quotas: &'q [Quota],
        left: usize,
    ) -> Result<Found<'q>, DatabaseError> {
        let began = Instant::now();
        let names: Vec<&str> = quotas.iter().map(|quota| &*quota.queue).collect();
        let limits: Vec<i32> = quotas.iter().map(|quota| size(quota.most)).collect();
        let (times, ids) = self.choose_begins(began, quotas);
        let (nonce, lease, want) = (fastrand::i64(..), search.worker.lease.as_secs_f64(), i64::from(size(left)));
        let queues = names.iter().map(ToString::to_string).collect();
        let release = Release { context: Arc::clone(&self.context), claiming: search.claiming.clone(), queues };
        let sent = SentClaim::new(&self.context.service, release, vec![nonce]);
        let options = &self.context.options;
        let (keep, keep_dead) = (options.keep_done.as_secs_f64(), options.keep_dead.map(|keep| keep.as_secs_f64()));
        let params: [Param<'_>; 10] =
            [&names, &limits, &times, &ids, &want, &&*search.worker.name, &nonce, &lease, &keep, &keep_dead];
        let rows = connection.query(&TAKE, &params).await?;
        sent.received_except(Vec::new());
        let cost = Cost { began, took: began.elapsed(), rows: rows.len() };
        let found = self.add(search, &rows, quotas, nonce);
        self.move_marks(search, quotas, cost);
        for queue in found.queues() {
            self.context.notifier.leased(queue, search.worker.lease);
        }
        Ok(found)
    }

    /// Where the claim begins, as columns: queue by queue, and for each the priorities ascending.
    fn choose_begins(&self, now: Instant, quotas: &[Quota]) -> (Vec<SystemTime>, Vec<i64>) {
        let mut marks = self.marks();
        let mut begins = Vec::with_capacity(quotas.len() * PRIORITIES);
        for quota in quotas {
            begins.extend(marks.entry(Arc::clone(&quota.queue)).or_default().choose(now));
        }
        begins.into_iter().unzip()
    }

    /// Adds the claimed jobs to the search. Jobs that the claim ended, because their attempts are
    /// used up or they were to be cancelled, are reported.
    fn add<'q>(&self, search: &mut Search<'_>, rows: &[Row], quotas: &'q [Quota], nonce: i64) -> Found<'q> {
        let mut found = Found::nothing(quotas);
        for row in rows {
            let (name, ended): (&str, Option<&str>) = (row.get("queue"), row.get("ended"));
            let Some(queue) = found.count(name) else { continue };
            match ended.and_then(State::parse) {
                Some(state) => self.context.reporter.emit(&JobEvent::Ended { job: about(row, queue), state }),
                None => search.jobs.push(claimed(row, queue, nonce, &search.claiming)),
            }
        }
        found
    }

    /// The low-water marks follow what the claim found.
    fn move_marks(&self, search: &Search<'_>, quotas: &[Quota], cost: Cost) {
        let mut marks = self.marks();
        for Quota { queue, .. } in quotas {
            let jobs = search.jobs.iter().filter(|job| job.queue == *queue).map(|job| (job.priority, job.was_due));
            marks.entry(Arc::clone(queue)).or_default().claimed(cost, jobs);
        }
    }

    /// Reads when the next job is due in queues that have no more for now.
    async fn read_next_due(
        &self,
        connection: &Connection,
        search: &mut Search<'_>,
        queues: &[Queue],
    ) -> Result<(), DatabaseError> {
        let began = Instant::now();
        let mut names: Vec<&str> = Vec::with_capacity(queues.len());
        for queue in queues {
            let wait = self.rest(queue);
            // The claim did not read all jobs: a later claim round must.
            let next = (!wait.is_zero()).then_some(wait);
            search.exhausted.insert(Arc::clone(queue), Exhausted::NoneDue { next });
            if next.is_none() {
                names.push(queue);
            }
        }
        if names.is_empty() {
            return Ok(());
        }
        let rows = connection.query(&NEXT, &[&names]).await?;
        let took = began.elapsed();
        for row in rows {
            let queue: Queue = Arc::from(row.get::<_, &str>("queue"));
            let due = row.get::<_, Option<f64>>("due_s").map(|due| Duration::from_secs_f64(due.clamp(0.0, 1e9)));
            let quiet = row.get::<_, bool>("quiet").then(|| self.context.options.quiet());
            self.marks().entry(Arc::clone(&queue)).or_default().read_next_due(began, took);
            let next = [due, quiet].into_iter().flatten().min();
            let contended: bool = row.get("contended");
            let exhausted = if contended { Exhausted::Contended { next } } else { Exhausted::NoneDue { next } };
            search.exhausted.insert(queue, exhausted);
        }
        Ok(())
    }

    /// How long until the next due time of the queue may be read.
    fn rest(&self, queue: &Queue) -> Duration {
        let now = Instant::now();
        let wait = |mark: &LowWater| mark.claim_wait(now).max(mark.next_due_wait(now));
        self.marks().get(queue).map_or(Duration::ZERO, wait)
    }

    fn deferred(&self) -> MutexGuard<'_, HashSet<Queue>> {
        self.deferred.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn marks(&self) -> MutexGuard<'_, HashMap<Queue, LowWater>> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn size(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
