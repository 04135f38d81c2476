//! One worker's part of a claim round.
//!
//! Owns which queues a statement claims from, and what the rows show about each of them. Promises
//! that a queue which had too few jobs counts as exhausted only after its next due time was read,
//! or with the time after which it may be read. Gives no job back: a failed search keeps those it
//! found, for the round to give back.
//!
//! Next: `shares` (slots for each queue), `low_water` (where a claim begins to read), `give_back`.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use reveille_wake::{Cause, WokenKey};
use tokio_postgres::Row;

use super::give_back::Release;
use super::low_water::LowWater;
use super::shares::shares;
use super::{ClaimSource, Claimed};
use crate::database::{Connection, DatabaseError, Param, Purpose};
use crate::jobs::event::{About, JobEvent};
use crate::jobs::id::{JobId, JobToken};
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
}

impl ClaimSource {
    /// Those of the keys that are in this round only because their next due time was not read.
    pub(super) fn take_next_due_unknown<'r>(&self, woken: impl Iterator<Item = &'r WokenKey<Queue>>) -> Vec<Queue> {
        let mut next_due_unknown = self.next_due_unknown();
        let left = woken
            .filter(|woken| next_due_unknown.remove(&woken.key) && matches!(woken.cause, Cause::More | Cause::Started));
        left.map(|woken| Arc::clone(&woken.key)).collect()
    }

    /// Claims until there are as many jobs as wanted, or no more. A queue of `next_due_unknown` is
    /// claimed from only if the read of its next due time finds a due job.
    pub(super) async fn search(
        &self,
        kept: &mut Option<Connection>,
        search: &mut Search<'_>,
        next_due_unknown: &[Queue],
    ) -> Result<(), DatabaseError> {
        let connection = match kept {
            Some(connection) if !connection.is_closed() => connection,
            other => other.insert(self.context.database.connection(Purpose::Dedicated("claim")).await?),
        };
        let want = search.worker.want();
        if want == 0 {
            search.exhausted.extend(search.queues.iter().map(|queue| (Arc::clone(queue), Exhausted::NoRoom)));
        }
        // While reads of a queue rest, its next due time cannot be read, and only a claim finds
        // jobs that were added since.
        let next_due_unknown: Vec<Queue> =
            next_due_unknown.iter().filter(|queue| self.rest(queue).is_zero()).cloned().collect();
        if want > 0 && !next_due_unknown.is_empty() {
            self.read_next_due(connection, search, &next_due_unknown).await?;
            // A job that is due was added since, or is locked by another transaction.
            search.exhausted.retain(|_, exhausted| matches!(exhausted, Exhausted::NoneDue { .. }));
        }
        let mut open: Vec<Queue> =
            search.queues.iter().filter(|q| !search.exhausted.contains_key(*q)).cloned().collect();
        while search.jobs.len() < want && !open.is_empty() {
            let left = want - search.jobs.len();
            let quotas = shares(&open, left, |queue| search.worker.weight(queue));
            let found = self.take(connection, search, &quotas, left).await?;
            let filled = found.iter().sum::<usize>() >= left;
            // A queue that had less than its share has no more; the others may, if there is still
            // room.
            open = quotas
                .iter()
                .zip(&found)
                .filter(|((_, quota), found)| *found >= quota)
                .map(|((q, _), _)| Arc::clone(q))
                .collect();
            let short: Vec<Queue> = quotas.iter().map(|(q, _)| q).filter(|q| !open.contains(q)).cloned().collect();
            if !filled && search.jobs.is_empty() {
                self.read_next_due(connection, search, &short).await?;
            } else if !filled {
                // They count as having more: the next claim round reads their next due time, while
                // these jobs run.
                self.next_due_unknown().extend(short);
            }
        }
        Ok(())
    }

    /// One claim; returns how many jobs it found in each queue.
    async fn take(
        &self,
        connection: &Connection,
        search: &mut Search<'_>,
        quotas: &[(Queue, usize)],
        left: usize,
    ) -> Result<Vec<usize>, DatabaseError> {
        let began = Instant::now();
        let (names, limits): (Vec<&str>, Vec<i32>) =
            quotas.iter().map(|(queue, quota)| (&**queue, size(*quota))).unzip();
        let (mut times, mut ids) = (Vec::new(), Vec::new());
        for (queue, _) in quotas {
            self.marks().entry(Arc::clone(queue)).or_default().begin(began, &mut times, &mut ids);
        }
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
        let took = began.elapsed();
        let mut found = vec![0; quotas.len()];
        for row in &rows {
            let (name, ended): (&str, Option<&str>) = (row.get("queue"), row.get("ended"));
            let Some(index) = names.iter().position(|queue| *queue == name) else { continue };
            found[index] += 1;
            let queue = &quotas[index].0;
            match ended.and_then(State::parse) {
                Some(state) => self.context.reporter.emit(&JobEvent::Ended { job: about(row, queue), state }),
                None => search.jobs.push(claimed(row, queue, nonce, &search.claiming)),
            }
        }
        let mut marks = self.marks();
        for (queue, _) in quotas {
            let places = search.jobs.iter().filter(|job| job.queue == *queue).map(|job| (job.priority, job.was_due));
            marks.entry(Arc::clone(queue)).or_default().end(began, took, rows.len(), places);
        }
        drop(marks);
        for ((queue, _), _) in quotas.iter().zip(&found).filter(|(_, found)| **found > 0) {
            self.context.notifier.leased(queue, search.worker.lease);
        }
        Ok(found)
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

    fn next_due_unknown(&self) -> MutexGuard<'_, HashSet<Queue>> {
        self.next_due_unknown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn marks(&self) -> MutexGuard<'_, HashMap<Queue, LowWater>> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn about(row: &Row, queue: &Queue) -> About {
    About {
        id: JobId(row.get("id")),
        kind: Arc::from(row.get::<_, Option<&str>>("kind").unwrap_or_default()),
        queue: Arc::clone(queue),
        attempt: row.get("attempt"),
        item_id: row.get::<_, Option<&[u8]>>("metadata").and_then(item_id),
    }
}

fn claimed(row: &Row, queue: &Queue, nonce: i64, claiming: &Claiming) -> Claimed {
    let id = JobId(row.get("id"));
    let timeout: Option<i64> = row.get("timeout_ms");
    Claimed {
        token: JobToken { id, epoch: row.get("epoch"), nonce },
        about: about(row, queue),
        queue: Arc::clone(queue),
        priority: row.get("priority"),
        max_attempts: row.get("max_attempts"),
        args: row.get::<_, Option<Vec<u8>>>("args").unwrap_or_default(),
        timeout: timeout.map(|timeout| Duration::from_millis(timeout.unsigned_abs())),
        tags: row.get::<_, Option<Vec<String>>>("tags").unwrap_or_default(),
        metadata: row.get("metadata"),
        waited: Duration::from_secs_f64(row.get::<_, f64>("waited_s").clamp(0.0, 1e9)),
        was_due: (row.get("was_due_at"), id.0),
        claiming: claiming.clone(),
    }
}

fn item_id(metadata: &[u8]) -> Option<Arc<str>> {
    let value: serde_json::Value = serde_json::from_slice(metadata).ok()?;
    match value.get("item_id")? {
        serde_json::Value::String(text) => Some(Arc::from(&**text)),
        serde_json::Value::Null => None,
        other => Some(Arc::from(other.to_string())),
    }
}

fn size(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
