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
    /// are woken for then. A transaction that is rolled back leaves none and wakes nobody.
    ///
    /// A job that cannot be one refuses the call before anything is sent. Needs a connection to
    /// this database whose role may use the schema.
    pub async fn enqueue_in<C>(&self, client: &C, jobs: Vec<NewJob>) -> Result<Vec<Enqueued>, JobsError>
    where
        C: GenericClient + Sync,
    {
        self.check_all(&jobs)?;
        let (columns, notify) = (Columns::of(&jobs), self.parts.context.options.notify);
        let text = ENQUEUE_CAREFULLY.text(self.database().schema());
        let typed: Vec<(Param<'_>, Type)> =
            columns.careful(&notify).into_iter().zip(ENQUEUE_CAREFULLY.types.iter().cloned()).collect();
        let rows = client.query_typed(&text, &typed).await.map_err(told)?;
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
            let said = error.as_database_error();
            let said = said.map(|said| (said.code().unwrap_or_default().into_owned(), said.message().to_owned()));
            caller(said, Box::new(error))
        })?;
        Ok(rows.iter().map(|row| Enqueued { id: JobId(row.get("id")), existing: row.get("existing") }).collect())
    }

    pub(super) fn check_all(&self, jobs: &[NewJob]) -> Result<(), JobsError> {
        let limit = self.parts.context.options.args_bytes_max;
        jobs.iter().try_for_each(|job| job.check(limit))
    }
}

/// What tokio-postgres said.
pub(super) fn told(error: tokio_postgres::Error) -> JobsError {
    let said = error.as_db_error().map(|said| (said.code().code().to_owned(), said.message().to_owned()));
    caller(said, Box::new(error))
}

/// What the caller's driver said, in the words of the database when it is about the values.
fn caller(said: Option<(String, String)>, source: Box<dyn Error + Send + Sync>) -> JobsError {
    match said {
        Some((code, message)) if code == "23505" => JobsError::Duplicate(message),
        Some((code, message)) if code.starts_with("22") => JobsError::Refused(message),
        _ => JobsError::Caller { source },
    }
}
