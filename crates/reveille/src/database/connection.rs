//! One connection to PostgreSQL, and statements on it.
//!
//! A [`Connection`] owns its session: batchers keep one each, callers borrow one from the pool.
//! Statements may be sent without waiting for earlier ones (`join` several futures on one
//! `&Connection`): they are pipelined and answered in order. A connection never repairs itself;
//! when [`is_closed`](Connection::is_closed), ask the [`Database`](super::Database) for another
//! one. Every wait has an end: the server's limit, and ours a little later.
//!
//! Next: [`super::transaction`] for several statements in one.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::TryStreamExt;
use tokio::time::timeout;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Row, RowStream};
use tokio_util::task::TaskTracker;

use super::connector::Opened;
use super::error::DatabaseError;
use super::explain::Place;
use super::options::StatementMode;
use super::outage::SaysAway;
use super::plans::{self, Plans};
use super::shared::Shared;
use super::statement::Statement;
use super::statements::SERVER_VERSION;
use super::tls::Tls;
use super::version::ServerVersion;
use super::{driver, pipeline};

/// How much longer than the server we wait: it should be the one to say that time is up.
const PATIENCE: Duration = Duration::from_secs(5);

/// A parameter of a statement.
pub type Param<'a> = &'a (dyn ToSql + Sync);

/// A session of our own, or behind a pooler as much of one as there is.
pub struct Connection {
    client: Client,
    tls: Tls,
    place: Place,
    version: Option<ServerVersion>,
    shared: Arc<Shared>,
    prepared: Mutex<HashMap<&'static str, tokio_postgres::Statement>>,
    plans: Plans,
    /// Counts what is in flight, so that closing can wait for it.
    work: TaskTracker,
    /// Held while the parts of a pooled statement are sent.
    order: Mutex<()>,
    /// Set when an answer did not come in time, because later answers would queue behind it, and
    /// when the server accepts no writes, because a demoted server may keep its sessions open.
    spent: AtomicBool,
    /// Statements without an answer yet, also those whose caller has left.
    unanswered: AtomicUsize,
    /// How long we wait for an answer; `None` for ever.
    patience: Option<Duration>,
    opened_at: Instant,
}

impl Connection {
    pub(crate) fn start(opened: Opened, shared: Arc<Shared>) -> Self {
        let work = TaskTracker::new();
        let limit = shared.settings.statement_timeout;
        shared.tasks.spawn(driver::drive(opened.wire, work.clone(), shared.closing.clone()));
        Self {
            client: opened.client,
            tls: opened.tls,
            place: opened.place,
            version: opened.version,
            shared,
            prepared: Mutex::default(),
            plans: Plans::default(),
            work,
            order: Mutex::default(),
            spent: AtomicBool::new(false),
            unanswered: AtomicUsize::new(0),
            patience: (!limit.is_zero()).then(|| limit + PATIENCE),
            opened_at: Instant::now(),
        }
    }

    /// The same without our own limit on answers, for work that may take long; the server's limits
    /// remain.
    pub(crate) fn patient(self) -> Self {
        Self { patience: None, ..self }
    }

    /// Whether this connection is of no more use.
    pub fn is_closed(&self) -> bool {
        self.client.is_closed() || self.spent.load(Ordering::Relaxed)
    }

    /// Whether sessions may change behind it, from one transaction to the next.
    pub(crate) fn is_pooled(&self) -> bool {
        self.shared.settings.mode == StatementMode::Pooled
    }

    /// Whether the next answer would belong to the next statement. Otherwise a caller gave up on
    /// its statement: the server is asked to stop it, or the next user would wait for its answer.
    pub(crate) fn is_free(&self) -> bool {
        let free = self.unanswered.load(Ordering::Relaxed) == 0;
        if !free && !self.is_closed() {
            self.give_up();
        }
        free
    }

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

    async fn run(&self, statement: &Statement, params: &[Param<'_>]) -> Result<Answer, DatabaseError> {
        match self.shared.settings.mode {
            StatementMode::Direct => self.run_inside(statement, params).await,
            StatementMode::Pooled => {
                let answer = self.answer(statement, params);
                let whole = pipeline::in_transaction(&self.client, &self.order, &self.shared.opening, answer);
                self.bounded(statement.name, whole).await
            }
        }
    }

    /// Run a statement by itself on a session of ours, or as part of a transaction that is already
    /// open.
    pub(crate) async fn run_inside(
        &self,
        statement: &Statement,
        params: &[Param<'_>],
    ) -> Result<Answer, DatabaseError> {
        let asked = Instant::now();
        let answer = self.bounded(statement.name, self.answer(statement, params)).await;
        if !self.is_pooled() && self.plans.are_doubtful(asked, Instant::now()) {
            self.send_and_forget(plans::DISCARD);
        }
        answer
    }

    /// Run SQL text that takes no parameters and returns nothing.
    pub(crate) async fn batch(&self, doing: &str, sql: &str) -> Result<(), DatabaseError> {
        self.bounded(doing, self.client.batch_execute(sql)).await
    }

    /// As [`batch`](Self::batch), with the driver's own error.
    pub(crate) async fn batch_raw(&self, sql: &str) -> Result<Result<(), Error>, DatabaseError> {
        self.in_time("a commit", self.client.batch_execute(sql)).await
    }

    /// Send text without waiting for its answer.
    pub(crate) fn send_and_forget(&self, sql: &str) {
        use futures_util::FutureExt;
        // The message leaves with the first poll; the answer is read and dropped by the driver.
        let _ = self.client.batch_execute(sql).now_or_never();
    }

    /// Counts as work in flight until it is dropped.
    pub(crate) fn work(&self) -> tokio_util::task::task_tracker::TaskTrackerToken {
        self.work.token()
    }

    /// The server's version, as reported at login; asked for where a pooler did not pass it on.
    pub(crate) async fn version(&self) -> Result<ServerVersion, DatabaseError> {
        if let Some(version) = &self.version {
            return Ok(version.clone());
        }
        let row = self.query_opt(&SERVER_VERSION, &[]).await?;
        let reported = row.map(|row| row.get::<_, String>(0)).unwrap_or_default();
        let unknown =
            || DatabaseError::UnsupportedVersion { server: self.place.server.clone(), version: reported.clone() };
        ServerVersion::parse(&reported).ok_or_else(unknown)?.accepted(&self.place.server)
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    async fn answer(&self, statement: &Statement, params: &[Param<'_>]) -> Result<Answer, Error> {
        let rows = match self.shared.settings.mode {
            StatementMode::Direct => {
                let prepared = self.prepare(statement).await?;
                let sent = self.client.query_raw(&prepared, params.iter().copied()).await;
                sent.inspect_err(|error| self.forget_stale(statement, error))?
            }
            StatementMode::Pooled => {
                let text = self.shared.texts.of(statement);
                let typed = params.iter().copied().zip(statement.types.iter().cloned());
                self.client.query_typed_raw(&text, typed).await?
            }
        };
        Answer::collect(rows).await
    }

    async fn prepare(&self, statement: &Statement) -> Result<tokio_postgres::Statement, Error> {
        if let Some(prepared) = self.prepared().get(statement.name) {
            return Ok(prepared.clone());
        }
        let text = self.shared.texts.of(statement);
        let prepared = self.client.prepare_typed(&text, statement.types).await?;
        self.prepared().insert(statement.name, prepared.clone());
        Ok(prepared)
    }

    /// A migration may change a result's columns, and a pooler may give us another session: the
    /// statement is prepared again next time.
    fn forget_stale(&self, statement: &Statement, error: &Error) {
        if error.code().is_some_and(|code| matches!(code.code(), "0A000" | "26000")) {
            self.prepared().remove(statement.name);
        }
    }

    fn prepared(&self) -> std::sync::MutexGuard<'_, HashMap<&'static str, tokio_postgres::Statement>> {
        self.prepared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn bounded<T>(&self, doing: &str, work: impl Future<Output = Result<T, Error>>) -> Result<T, DatabaseError> {
        let answer = self.in_time(doing, work).await?.map_err(|error| self.explain(doing, &error))?;
        self.shared.connector.outage.answered();
        Ok(answer)
    }

    /// Why the server refused. A session that accepts no writes is used no more: the next one finds
    /// the primary.
    pub(crate) fn explain(&self, doing: &str, error: &Error) -> DatabaseError {
        let error = self.place.statement(doing, error);
        if matches!(error, DatabaseError::ReadOnly { .. }) {
            self.spent.store(true, Ordering::Relaxed);
        }
        // A session that ends because we close says nothing about the server.
        if error.says_away() && !self.shared.closing.is_cancelled() {
            self.shared.connector.outage.broke(self.opened_at, &error);
        }
        error
    }

    async fn in_time<T>(&self, doing: &str, work: impl Future<Output = T>) -> Result<T, DatabaseError> {
        let _in_flight = self.work.token();
        self.unanswered.fetch_add(1, Ordering::Relaxed);
        let answer = match self.patience {
            Some(patience) => timeout(patience, work).await.map_err(|_| {
                self.give_up();
                DatabaseError::Timeout { doing: doing.to_owned(), cause: None }
            }),
            None => Ok(work.await),
        };
        self.unanswered.fetch_sub(1, Ordering::Relaxed);
        answer
    }

    /// Ask the server to stop, on a connection of its own, and use this one no more.
    pub(crate) fn give_up(&self) {
        self.spent.store(true, Ordering::Relaxed);
        let (cancel, tls) = (self.client.cancel_token(), self.tls.clone());
        self.shared.tasks.spawn(timeout(PATIENCE, async move { cancel.cancel_query(tls).await }));
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("place", &self.place)
            .field("closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

/// What a statement returned.
pub(crate) struct Answer {
    pub(crate) rows: Vec<Row>,
    pub(crate) affected: u64,
}

impl Answer {
    async fn collect(stream: RowStream) -> Result<Self, Error> {
        let mut stream = std::pin::pin!(stream);
        let mut rows = Vec::new();
        while let Some(row) = stream.try_next().await? {
            rows.push(row);
        }
        Ok(Self { rows, affected: stream.rows_affected().unwrap_or(0) })
    }
}
