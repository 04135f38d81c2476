//! Enqueue thousands as part of a transaction that is the caller's own, by COPY.
//!
//! Copies jobs that are not unique: [`NewJob::check`] and the tables enforce all their rules.
//! Unique jobs are few, and are enqueued by the function that checks their keys.

use std::pin::pin;
use std::time::SystemTime;

use tokio_postgres::Transaction;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::Type;

use super::columns::milliseconds;
use super::foreign::driver_error;
use super::{Enqueued, Jobs};
use crate::database::{Param, Statement};
use crate::jobs::error::JobsError;
use crate::jobs::id::JobId;
use crate::jobs::new_job::NewJob;
use crate::jobs::statements::{ANNOUNCE, COPY_BODIES, COPY_JOBS, NUMBER};

const BODY: [Type; 11] = [
    Type::INT8,
    Type::TEXT,
    Type::TEXT,
    Type::INT2,
    Type::TIMESTAMPTZ,
    Type::INT2,
    Type::INT8,
    Type::TEXT,
    Type::TEXT_ARRAY,
    Type::BYTEA,
    Type::BYTEA,
];
const JOB: [Type; 5] = [Type::INT8, Type::TIMESTAMPTZ, Type::INT2, Type::INT2, Type::TEXT];

impl Jobs {
    /// As [`enqueue_in`](Self::enqueue_in), by COPY: for thousands of jobs at once. The jobs exist
    /// if and when the transaction commits, and their queues are woken then; the answers are in the
    /// order of the jobs.
    ///
    /// An invalid job refuses the call before anything is sent. Unique jobs are enqueued by
    /// `enqueue_in`. The transaction's role must be able to read the sequence of the ids, and its
    /// connection must be a direct one or a pooler that knows prepared statements.
    pub async fn enqueue_copy_in(
        &self,
        transaction: &Transaction<'_>,
        jobs: Vec<NewJob>,
    ) -> Result<Vec<Enqueued>, JobsError> {
        self.check_all(&jobs)?;
        let is_unique: Vec<bool> = jobs.iter().map(|job| job.unique.is_some()).collect();
        let (unique, plain): (Vec<NewJob>, Vec<NewJob>) = jobs.into_iter().partition(|job| job.unique.is_some());
        let copied = self.copy(transaction, &plain).await?;
        let checked = if unique.is_empty() { Vec::new() } else { self.enqueue_in(transaction, unique).await? };
        let (mut copied, mut checked) = (copied.into_iter(), checked.into_iter());
        let answer = |is_unique: bool| if is_unique { checked.next() } else { copied.next() };
        Ok(is_unique.into_iter().filter_map(answer).collect())
    }

    async fn copy(&self, transaction: &Transaction<'_>, jobs: &[NewJob]) -> Result<Vec<Enqueued>, JobsError> {
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        let text = |statement: &Statement| statement.text(self.database().schema());
        let count = i64::try_from(jobs.len()).unwrap_or(i64::MAX);
        let row = transaction.query_typed_one(&text(&NUMBER), &[(&count, Type::INT8)]).await.map_err(driver_error)?;
        let (ids, now): (Vec<i64>, SystemTime) = (row.get("ids"), row.get("now"));
        let numbered: Vec<Numbered<'_>> = ids.iter().zip(jobs).map(|(id, job)| Numbered::of(*id, job, now)).collect();
        copy_rows(transaction, &text(&COPY_BODIES), &BODY, numbered.iter().map(Numbered::body)).await?;
        copy_rows(transaction, &text(&COPY_JOBS), &JOB, numbered.iter().map(Numbered::job)).await?;
        if self.parts.context.options.notify {
            let mut queues: Vec<&str> = jobs.iter().map(|job| &*job.queue).collect();
            queues.sort_unstable();
            queues.dedup();
            transaction.query_typed(&text(&ANNOUNCE), &[(&queues, Type::TEXT_ARRAY)]).await.map_err(driver_error)?;
        }
        Ok(ids.into_iter().map(|id| Enqueued { id: JobId(id), existing: false }).collect())
    }
}

/// Copies rows into a table.
async fn copy_rows<'r, const COLUMNS: usize>(
    transaction: &Transaction<'_>,
    copy: &str,
    types: &[Type; COLUMNS],
    rows: impl Iterator<Item = [Param<'r>; COLUMNS]>,
) -> Result<(), JobsError> {
    let sink = transaction.copy_in(copy).await.map_err(driver_error)?;
    let mut writer = pin!(BinaryCopyInWriter::new(sink, types));
    for row in rows {
        writer.as_mut().write(&row).await.map_err(driver_error)?;
    }
    writer.finish().await.map_err(driver_error)?;
    Ok(())
}

/// A job with its id, as the tables have it.
struct Numbered<'j> {
    id: i64,
    due: SystemTime,
    timeout_ms: Option<i64>,
    backoff: Option<&'j str>,
    tags: Option<&'j Vec<String>>,
    job: &'j NewJob,
}

impl<'j> Numbered<'j> {
    fn of(id: i64, job: &'j NewJob, now: SystemTime) -> Self {
        Self {
            id,
            due: job.due_at().unwrap_or_else(|| now + job.delay.unwrap_or_default()),
            timeout_ms: job.timeout.map(milliseconds),
            backoff: job.backoff.text(),
            tags: (!job.tags.is_empty()).then_some(&job.tags),
            job,
        }
    }

    fn body(&self) -> [Param<'_>; 11] {
        let Self { id, due, timeout_ms, backoff, tags, job } = self;
        let NewJob { kind, queue, priority, max_attempts, metadata, args, .. } = *job;
        [id, kind, queue, priority, due, max_attempts, timeout_ms, backoff, tags, metadata, args]
    }

    fn job(&self) -> [Param<'_>; 5] {
        let NewJob { max_attempts, priority, queue, .. } = self.job;
        [&self.id, &self.due, max_attempts, priority, queue]
    }
}
