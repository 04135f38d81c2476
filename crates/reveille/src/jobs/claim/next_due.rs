//! When queues that have no more jobs are due next.
//!
//! Owns the read of due times. It exists apart from the claim because a claim that found jobs does
//! not wait for it: its jobs start first, and the next round reads the due time while they run.
//! Such a queue is deferred. Promises that the round after a deferral reads the due time first, and
//! claims from the queue only if a job is due.
//!
//! Next: [`crate::jobs::worker`].

use std::collections::HashSet;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use reveille_wake::{Cause, WokenKey};
use tokio_postgres::Row;

use super::ClaimSource;
use super::search::{Exhausted, Search};
use crate::database::{Connection, DatabaseError};
use crate::jobs::ready::Queue;
use crate::jobs::statements::NEXT;

impl ClaimSource {
    /// Of the woken queues, those that are in this round only because the last one deferred them.
    pub(super) fn take_deferred<'r>(&self, woken: impl Iterator<Item = &'r WokenKey<Queue>>) -> Vec<Queue> {
        let mut deferred = self.deferred();
        let only =
            woken.filter(|woken| deferred.remove(&woken.key) && matches!(woken.cause, Cause::More | Cause::Started));
        only.map(|woken| Arc::clone(&woken.key)).collect()
    }

    /// Reads the next due times that the last round deferred.
    pub(super) async fn read_deferred(
        &self,
        connection: &Connection,
        search: &mut Search<'_>,
    ) -> Result<(), DatabaseError> {
        // While reads of a queue rest, its next due time cannot be read, and only a claim finds
        // jobs that were added since.
        let deferred = search.deferred.iter();
        let readable: Vec<Queue> =
            deferred.filter(|queue| self.marks.next_due_wait(queue).is_zero()).cloned().collect();
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
    pub(super) async fn follow_up(
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

    /// Reads when the next job is due in queues that have no more for now.
    async fn read_next_due(
        &self,
        connection: &Connection,
        search: &mut Search<'_>,
        queues: &[Queue],
    ) -> Result<(), DatabaseError> {
        let began = Instant::now();
        let names = self.readable(search, queues);
        if names.is_empty() {
            return Ok(());
        }
        let rows = connection.query(&NEXT, &[&names]).await?;
        let took = began.elapsed();
        for row in &rows {
            let queue: Queue = Arc::from(row.get::<_, &str>("queue"));
            self.marks.read_next_due(&queue, began, took);
            search.exhausted.insert(queue, self.exhausted(row));
        }
        Ok(())
    }

    /// Notes that the queues are exhausted, and returns those whose next due time may be read. Of
    /// the others the claim did not read all jobs, and a later round must.
    fn readable<'q>(&self, search: &mut Search<'_>, queues: &'q [Queue]) -> Vec<&'q str> {
        let mut readable = Vec::with_capacity(queues.len());
        for queue in queues {
            let wait = self.marks.next_due_wait(queue);
            let next = (!wait.is_zero()).then_some(wait);
            search.exhausted.insert(Arc::clone(queue), Exhausted::NoneDue { next });
            if next.is_none() {
                readable.push(&**queue);
            }
        }
        readable
    }

    /// What a row of `sql/jobs/claim/next.sql` says about its queue. A quiet queue sends no hints
    /// and is polled.
    fn exhausted(&self, row: &Row) -> Exhausted {
        let due = row.get::<_, Option<f64>>("due_s").map(|due| Duration::from_secs_f64(due.clamp(0.0, 1e9)));
        let poll = row.get::<_, bool>("quiet").then(|| self.context.options.quiet());
        let next = due.into_iter().chain(poll).min();
        if row.get("contended") { Exhausted::Contended { next } } else { Exhausted::NoneDue { next } }
    }

    fn deferred(&self) -> MutexGuard<'_, HashSet<Queue>> {
        self.deferred.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
