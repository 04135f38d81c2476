//! Runs statements, and tries again when that helps.
//!
//! Owns the access to the provider's schema. Promises that errors which pass by themselves (a
//! failover, a deadlock, a full pool) are waited out, as long as the caller allows; and that a
//! statement which may have been done is repeated only if twice is the same as once.
//!
//! Next: [`crate::turns`], [`crate::activities`].

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use duroxide::providers::ProviderError;
use reveille::database::{Database, DatabaseError, Param, Statement};
use reveille::service::{Idempotent, Retry};
use tokio::time::Instant;
use tokio_postgres::Row;

use crate::error::provider_error;

/// How long reads and settlements are tried: longer than a failover takes. A lock that ends
/// meanwhile ends the attempts, because the statement then finds that the token is not held.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// The tables of one provider.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    pub(crate) database: Database,
}

/// How a settlement ended.
#[derive(Debug)]
pub(crate) struct Settled {
    pub(crate) rows: Vec<Row>,
    /// An earlier try may have succeeded.
    pub(crate) doubted: bool,
}

impl Store {
    /// One try on a shared connection.
    pub(crate) async fn attempt(&self, statement: &Statement, params: &[Param<'_>]) -> Result<Vec<Row>, DatabaseError> {
        self.database.acquire().await?.query(statement, params).await
    }

    /// For what may be done twice: reads, and settlements that recognise themselves.
    pub(crate) async fn repeat(
        &self,
        operation: &str,
        statement: &Statement,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, ProviderError> {
        self.repeat_within(PATIENCE, operation, statement, params).await
    }

    /// The same, no longer than `patience`.
    pub(crate) async fn repeat_within(
        &self,
        patience: Duration,
        operation: &str,
        statement: &Statement,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, ProviderError> {
        let work = Idempotent(|| self.attempt(statement, params));
        patient(patience).run(work).await.map_err(|error| provider_error(operation, &error))
    }

    /// The same for a settlement: also returns whether an earlier try may have done it, because its
    /// answer was lost.
    pub(crate) async fn settle(
        &self,
        operation: &str,
        statement: &Statement,
        params: &[Param<'_>],
    ) -> Result<Settled, ProviderError> {
        let doubted = AtomicBool::new(false);
        let work = Idempotent(async || {
            let done = self.attempt(statement, params).await;
            if let Err(DatabaseError::Lost { .. } | DatabaseError::Timeout { .. }) = &done {
                doubted.store(true, Ordering::Relaxed);
            }
            done
        });
        let rows = patient(PATIENCE).run(work).await.map_err(|error| provider_error(operation, &error))?;
        Ok(Settled { rows, doubted: doubted.into_inner() })
    }

    /// For what must not be done twice: tried again only after an error which proves that it was
    /// not done.
    pub(crate) async fn once(
        &self,
        operation: &str,
        statement: &Statement,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, ProviderError> {
        let work = Idempotent(async || match self.attempt(statement, params).await {
            Err(error @ (DatabaseError::Lost { .. } | DatabaseError::Timeout { .. })) => Ok(Err(error)),
            Err(error) => Err(error),
            Ok(rows) => Ok(Ok(rows)),
        });
        let done = patient(PATIENCE).run(work).await;
        done.and_then(|done| done).map_err(|error| provider_error(operation, &error))
    }
}

fn patient(patience: Duration) -> Retry {
    let pauses = (Duration::from_millis(20), Duration::from_millis(500));
    Retry::default().attempts(u32::MAX).pauses(pauses.0, pauses.1).until(Instant::now() + patience)
}
