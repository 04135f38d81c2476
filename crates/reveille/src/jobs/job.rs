//! A job, as its handler sees it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_postgres::GenericClient;
use tokio_postgres::types::Type;
use tokio_util::sync::CancellationToken;

use super::claim::Claimed;
use super::context::JobsContext;
use super::error::JobsError;
use super::event::About;
use super::id::{JobId, JobToken};
use super::outcome::Outcome;
use super::ready::Queue;
use super::settle::{Columns, Ending, Settled, Settlement};
use super::statements::{PROGRESS, SETTLE};
use crate::database::Param;

/// A job that this process holds. Clones are the same job.
#[derive(Clone)]
pub struct Job {
    pub(super) held: Arc<Held>,
}

pub(super) struct Held {
    pub(super) token: JobToken,
    pub(super) about: About,
    pub(super) queue: Queue,
    priority: i16,
    max_attempts: i16,
    tags: Vec<String>,
    metadata: Option<Vec<u8>>,
    waited: Duration,
    pub(super) timeout: Option<Duration>,
    context: Arc<JobsContext>,
    /// Cancelled when the job should stop.
    pub(super) cancel: CancellationToken,
    /// Cancelled when the lease is lost.
    pub(super) lost: CancellationToken,
    /// Its handler settled it in a transaction of its own.
    pub(super) settled: AtomicBool,
    /// The job is to be cancelled; otherwise its worker stops.
    pub(super) cancel_requested: AtomicBool,
}

impl Job {
    /// The job, and its arguments.
    pub(super) fn new(context: &Arc<JobsContext>, claimed: Claimed) -> (Self, Vec<u8>) {
        let held = Held {
            token: claimed.token,
            about: claimed.about,
            queue: claimed.queue,
            priority: claimed.priority,
            max_attempts: claimed.max_attempts,
            tags: claimed.tags,
            metadata: claimed.metadata,
            waited: claimed.waited,
            timeout: claimed.timeout,
            context: Arc::clone(context),
            cancel: CancellationToken::new(),
            lost: CancellationToken::new(),
            settled: AtomicBool::new(false),
            cancel_requested: AtomicBool::new(false),
        };
        (Self { held: Arc::new(held) }, claimed.args)
    }

    /// Its id.
    pub fn id(&self) -> JobId {
        self.held.token.id
    }

    /// Its kind.
    pub fn kind(&self) -> &str {
        &self.held.about.kind
    }

    /// The queue it came from.
    pub fn queue(&self) -> &str {
        &self.held.queue
    }

    /// Its priority, 0 first.
    pub fn priority(&self) -> i16 {
        self.held.priority
    }

    /// Which attempt this is, from 1.
    pub fn attempt(&self) -> i32 {
        self.held.about.attempt
    }

    /// How many attempts there may be.
    pub fn max_attempts(&self) -> i16 {
        self.held.max_attempts
    }

    /// Its tags.
    pub fn tags(&self) -> &[String] {
        &self.held.tags
    }

    /// How long it had been due when it was claimed.
    pub fn waited(&self) -> Duration {
        self.held.waited
    }

    /// Its metadata, if it has any.
    pub fn metadata<T: DeserializeOwned>(&self) -> Result<Option<T>, JobsError> {
        let parse = |bytes: &Vec<u8>| serde_json::from_slice(bytes);
        let metadata = self.held.metadata.as_ref().map(parse).transpose();
        metadata.map_err(|source| JobsError::Json { what: "the metadata", source })
    }

    /// The proof that this attempt holds the job: for the SQL functions, and to fence effects of
    /// one's own.
    pub fn token(&self) -> JobToken {
        self.held.token
    }

    /// Ready when the job should stop: it was cancelled, its lease was lost, or its worker is
    /// shutting down and out of patience. A handler that does not stop is dropped a little later.
    pub async fn cancelled(&self) {
        self.held.cancel.cancelled().await;
    }

    /// Whether the job should stop.
    pub fn is_cancelled(&self) -> bool {
        self.held.cancel.is_cancelled()
    }

    /// Note the progress of the job, as JSON; [`Jobs::explain`](super::Jobs::explain) shows it.
    /// [`Settled::LeaseLost`] when another worker has the job, or it has ended.
    pub async fn progress(&self, progress: &impl Serialize) -> Result<Settled, JobsError> {
        let held = &self.held;
        let bytes = serde_json::to_vec(progress).map_err(|source| JobsError::Json { what: "the progress", source })?;
        let limit = held.context.options.args_bytes_max;
        if bytes.len() > limit {
            return Err(JobsError::TooLarge { what: "the words of progress", bytes: bytes.len(), limit });
        }
        let connection = held.context.database.acquire().await?;
        let JobToken { id, epoch, nonce } = held.token;
        let row = connection.query_opt(&PROGRESS, &[&id.0, &epoch, &nonce, &bytes]).await?;
        Ok(if row.is_some() { Settled::Recorded } else { Settled::LeaseLost })
    }

    /// Settle the job in a transaction of the handler's own, together with its other writes: both
    /// happen, or neither. [`Settled::LeaseLost`] means that another worker has the job, or that it
    /// has ended: roll back. The outcome that the handler returns afterwards counts only if the
    /// transaction did not commit; then the attempt has failed. A result that is too large is
    /// refused, and nothing is sent.
    pub async fn settle_in<C>(&self, client: &C, outcome: Outcome) -> Result<Settled, JobsError>
    where
        C: GenericClient + Sync,
    {
        let held = &self.held;
        outcome.check(held.context.options.args_bytes_max)?;
        let settlement = Settlement {
            token: held.token,
            about: held.about.clone(),
            queue: Arc::clone(&held.queue),
            ending: Ending::By(outcome.fitted()),
            took: Duration::ZERO,
            or_lost: false,
            interrupted: false,
        };
        let jobs = [&settlement];
        let columns = Columns::of(&jobs, &held.context);
        let text = SETTLE.text(held.context.database.schema());
        let typed: Vec<(Param<'_>, Type)> = columns.params().into_iter().zip(SETTLE.types.iter().cloned()).collect();
        // Before it is sent: from its commit on, a renewal finds the lease lost.
        held.settled.store(true, Ordering::Relaxed);
        let rows = client.query_typed(&text, &typed).await;
        let recorded = rows.as_ref().is_ok_and(|rows| rows.iter().any(|row| row.get::<_, &str>("said") == "recorded"));
        held.settled.store(recorded, Ordering::Relaxed);
        rows.map_err(|error| JobsError::Caller { source: Box::new(error) })?;
        Ok(if recorded { Settled::Recorded } else { Settled::LeaseLost })
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job")
            .field("id", &self.id())
            .field("kind", &self.kind())
            .field("attempt", &self.attempt())
            .finish_non_exhaustive()
    }
}
