//! Enqueue as part of a transaction that is the caller's own.

use std::error::Error;

use tokio_postgres::GenericClient;
use tokio_postgres::types::Type;

use super::columns::Columns;
use super::{Enqueued, Jobs};
use crate::database::Param;
use crate::jobs::error::JobsError;
use crate::jobs::id::JobId;
use crate::jobs::new_job::NewJob;
use crate::jobs::statements::ENQUEUE_CAREFULLY;

impl Jobs {
    /// Enqueue as part of the caller's own transaction: the jobs exist if and when it commits, and
    /// their queues are woken then. A transaction that is rolled back leaves no job and wakes no
    /// worker.
    ///
    /// An invalid job refuses the call before anything is sent. Needs a connection to this database
    /// whose role may use the schema.
    pub async fn enqueue_in<C>(&self, client: &C, jobs: Vec<NewJob>) -> Result<Vec<Enqueued>, JobsError>
    where
        C: GenericClient + Sync,
    {
        self.check_all(&jobs)?;
        let (columns, notify) = (Columns::of(&jobs), self.parts.context.options.notify);
        let text = ENQUEUE_CAREFULLY.text(self.database().schema());
        let typed: Vec<(Param<'_>, Type)> =
            columns.careful(&notify).into_iter().zip(ENQUEUE_CAREFULLY.types.iter().cloned()).collect();
        let rows = client.query_typed(&text, &typed).await.map_err(driver_error)?;
        Ok(rows.iter().map(|row| Enqueued { id: JobId(row.get("id")), existing: row.get("existing") }).collect())
    }

    /// The same on a connection, pool or transaction of sqlx.
    #[cfg(feature = "sqlx")]
    pub async fn enqueue_in_sqlx<'c, E>(&self, executor: E, jobs: Vec<NewJob>) -> Result<Vec<Enqueued>, JobsError>
    where
        E: sqlx::PgExecutor<'c>,
    {
        use sqlx::Row;
        self.check_all(&jobs)?;
        let (columns, notify) = (Columns::of(&jobs), self.parts.context.options.notify);
        let text = ENQUEUE_CAREFULLY.text(self.database().schema());
        let query = sqlx::query(&text)
            .bind(&columns.kinds)
            .bind(&columns.args)
            .bind(&columns.queues)
            .bind(&columns.wide_priorities)
            .bind(&columns.epochs)
            .bind(&columns.delays)
            .bind(&columns.wide_attempts)
            .bind(&columns.timeouts)
            .bind(&columns.backoffs)
            .bind(&columns.tags)
            .bind(&columns.metadata)
            .bind(&columns.scopes)
            .bind(&columns.keys)
            .bind(&columns.windows)
            .bind(&columns.conflicts)
            .bind(notify);
        let rows = query.fetch_all(executor).await.map_err(|error| {
            let refusal = error.as_database_error();
            let refusal =
                refusal.map(|refusal| (refusal.code().unwrap_or_default().into_owned(), refusal.message().to_owned()));
            caller_error(refusal, Box::new(error))
        })?;
        Ok(rows.iter().map(|row| Enqueued { id: JobId(row.get("id")), existing: row.get("existing") }).collect())
    }

    pub(super) fn check_all(&self, jobs: &[NewJob]) -> Result<(), JobsError> {
        let limit = self.parts.context.options.args_bytes_max;
        jobs.iter().try_for_each(|job| job.check(limit))
    }
}

/// An error of tokio-postgres.
pub(super) fn driver_error(error: tokio_postgres::Error) -> JobsError {
    let refusal = error.as_db_error().map(|refusal| (refusal.code().code().to_owned(), refusal.message().to_owned()));
    caller_error(refusal, Box::new(error))
}

/// An error of the caller's driver, in the words of the database when it refused the values.
fn caller_error(refusal: Option<(String, String)>, source: Box<dyn Error + Send + Sync>) -> JobsError {
    match refusal {
        Some((code, message)) if code == "23505" => JobsError::Duplicate(message),
        Some((code, message)) if code.starts_with("22") => JobsError::Refused(message),
        _ => JobsError::Caller { source },
    }
}
