//! Several statements that happen together or not at all.
//!
//! A [`Transaction`] that is dropped is rolled back. One that was
//! [identified](Transaction::identify) can be asked about later: if the connection ends during its
//! commit, the outcome is read on another connection instead of guessed.
//!
//! Next: [`super::resolve`].

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio_postgres::Row;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::cause::Cause;
use super::connection::{Answer, Connection, Param};
use super::error::DatabaseError;
use super::resolve::{self, Resolution, Xid};
use super::sqlstate::{SqlClass, classify};
use super::statement::Statement;
use super::statements::CURRENT_TRANSACTION;

/// How a commit ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "an unknown outcome must be dealt with"]
pub enum CommitOutcome {
    /// It took effect and is durable as far as the server's settings go.
    Committed,
    /// The connection ended during the commit, and the transaction was not identified (or could not
    /// be asked about): it took effect, or it did not.
    Unknown,
}

/// An open transaction; it has its connection to itself.
#[derive(Debug)]
pub struct Transaction<'c> {
    connection: &'c Connection,
    xid: Option<Xid>,
    /// Statements that did not succeed, or whose caller left before the answer: after a failed one
    /// PostgreSQL answers COMMIT with a silent rollback.
    doubtful: AtomicUsize,
    ended: bool,
    _in_flight: TaskTrackerToken,
}

impl Connection {
    /// Begin a transaction. READ COMMITTED, with the statement and lock limits of the options.
    pub async fn transaction(&mut self) -> Result<Transaction<'_>, DatabaseError> {
        let (in_flight, doubtful) = (self.work(), AtomicUsize::new(0));
        // The guard comes before the first byte: a caller who gives up while we wait must not leave
        // a transaction open, into which the next statement would be written and never committed.
        let transaction = Transaction { connection: self, xid: None, doubtful, ended: false, _in_flight: in_flight };
        transaction.batch("the beginning of a transaction", &transaction.connection.shared().opening).await?;
        Ok(transaction)
    }
}

impl Transaction<'_> {
    /// All rows of a statement.
    pub async fn query(&self, statement: &Statement, params: &[Param<'_>]) -> Result<Vec<Row>, DatabaseError> {
        Ok(self.run(statement, params).await?.rows)
    }

    /// The row of a statement that returns at most one; of several, the first.
    pub async fn query_opt(&self, statement: &Statement, params: &[Param<'_>]) -> Result<Option<Row>, DatabaseError> {
        Ok(self.run(statement, params).await?.rows.into_iter().next())
    }

    /// How many rows a statement wrote.
    pub async fn execute(&self, statement: &Statement, params: &[Param<'_>]) -> Result<u64, DatabaseError> {
        Ok(self.run(statement, params).await?.affected)
    }

    /// Run SQL text that takes no parameters and returns nothing; several statements may be in it.
    pub(crate) async fn batch(&self, doing: &str, sql: &str) -> Result<(), DatabaseError> {
        self.noting(self.connection.batch(doing, sql)).await
    }

    async fn run(&self, statement: &Statement, params: &[Param<'_>]) -> Result<Answer, DatabaseError> {
        self.noting(self.connection.run_inside(statement, params)).await
    }

    async fn noting<T>(&self, work: impl Future<Output = Result<T, DatabaseError>>) -> Result<T, DatabaseError> {
        self.doubtful.fetch_add(1, Ordering::Relaxed);
        let value = work.await?;
        self.doubtful.fetch_sub(1, Ordering::Relaxed);
        Ok(value)
    }

    /// Remember this transaction's id, so that an interrupted commit can be resolved. One round
    /// trip, once.
    pub async fn identify(&mut self) -> Result<(), DatabaseError> {
        let row = self.query_opt(&CURRENT_TRANSACTION, &[]).await?;
        self.xid = row.map(|row| Xid { id: row.get("xid"), timeline: row.get("timeline") });
        Ok(())
    }

    /// Make it happen.
    ///
    /// An error means that it did not happen. If the connection ends meanwhile and the transaction
    /// was identified, its outcome is asked for on another connection; when even that fails, the
    /// outcome is [`CommitOutcome::Unknown`].
    pub async fn commit(mut self) -> Result<CommitOutcome, DatabaseError> {
        if self.doubtful.load(Ordering::Relaxed) > 0 {
            return Err(DatabaseError::RolledBack);
        }
        let server = self.connection.place().server.clone();
        self.ended = true;
        let error = match self.connection.batch_raw("commit").await {
            Ok(Ok(())) => return Ok(CommitOutcome::Committed),
            Ok(Err(error)) if !is_unknown(&Cause::of(&error)) => {
                return Err(self.connection.explain("a commit", &error));
            }
            Ok(Err(error)) => error.to_string(),
            Err(silence) => silence.to_string(),
        };
        let Some(xid) = &self.xid else { return Ok(CommitOutcome::Unknown) };
        tracing::warn!(%server, error, xid = xid.id, "the connection ended during a commit, asking how it ended");
        match resolve::resolve(self.connection.shared(), xid).await {
            Resolution::Committed => Ok(CommitOutcome::Committed),
            Resolution::Aborted => Err(DatabaseError::NotCommitted { server }),
            Resolution::Unknown => Ok(CommitOutcome::Unknown),
        }
    }

    /// As [`commit`](Self::commit), for callers to whom an unknown outcome is an error.
    pub async fn commit_known(self) -> Result<(), DatabaseError> {
        let server = self.connection.place().server.clone();
        match self.commit().await? {
            CommitOutcome::Committed => Ok(()),
            CommitOutcome::Unknown => Err(DatabaseError::UnknownOutcome { server }),
        }
    }

    /// Undo it and wait until it is undone.
    pub async fn rollback(mut self) -> Result<(), DatabaseError> {
        self.ended = true;
        self.connection.batch("a rollback", "rollback").await
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.connection.send_and_forget("rollback");
        }
    }
}

/// Whether an error in answer to COMMIT leaves open what happened. A plain ERROR does not: nothing
/// was written. When the session ended with it, or a pooler lost its server, the commit may already
/// have been on disk.
fn is_unknown(cause: &Cause) -> bool {
    let class = cause.sqlstate().map(classify);
    cause.ended_the_session() || matches!(class, None | Some(SqlClass::Shutdown)) || cause.sqlstate() == Some("40003")
}
