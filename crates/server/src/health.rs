//! Three answers about ourselves: alive, ready, and both in the words of Queen MQ.
//!
//! `livez` never touches the database: a node that restarts because PostgreSQL is away makes things worse. The other two
//! ask [`crate::prober`], which asks the database at most once a second however many probes there are.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use reveille::database::{Database, DatabaseError, Pooled};
use serde_json::{Value, json};
use tokio::time::timeout;
use tracing::debug;

use crate::prober::Readiness;
use crate::problem::{Problem, come_back_later};

/// A probe gives up after a few seconds; it should hear "no" before that.
const PATIENCE: Duration = Duration::from_secs(2);

const NOT_READY: Problem = Problem {
    status: StatusCode::SERVICE_UNAVAILABLE,
    code: "database_unavailable",
    sentence: "the database does not answer",
};

pub(crate) async fn livez() -> Json<Value> {
    Json(json!({ "status": "alive" }))
}

pub(crate) async fn readyz(State(readiness): State<Readiness>) -> Response {
    if readiness.is_ready().await {
        Json(json!({ "status": "ready" })).into_response()
    } else {
        NOT_READY.into_response()
    }
}

pub(crate) async fn health(State(readiness): State<Readiness>) -> Response {
    let ready = readiness.is_ready().await;
    let (status, database) = if ready { ("healthy", "connected") } else { ("unhealthy", "disconnected") };
    let body = Json(json!({
        "status": status,
        "database": database,
        "server": "reveille",
        "version": env!("CARGO_PKG_VERSION"),
    }));
    if ready { body.into_response() } else { come_back_later(body) }
}

/// Asks the database whether it is there.
#[derive(Debug)]
pub(crate) struct Look {
    database: Database,
}

pub(crate) fn look(database: Database) -> Look {
    Look { database }
}

impl crate::prober::Probe for Look {
    async fn answers(&self) -> bool {
        // A connection that died unnoticed says nothing about the database: a second one is asked.
        let twice = async { self.ask().await.is_ok() || self.ask().await.is_ok() };
        timeout(PATIENCE, twice).await.unwrap_or(false)
    }
}

impl Look {
    /// An empty transaction, on a connection that is already there: when PostgreSQL has no room for another one, those
    /// we hold still do their work, and a node that called itself unready would make a shortage an outage.
    async fn ask(&self) -> Result<(), DatabaseError> {
        let mut borrowed = Borrowed(Some(self.database.acquire().await?));
        let Some(connection) = &mut borrowed.0 else { return Err(DatabaseError::Closed) };
        let answer = async { connection.transaction().await?.rollback().await };
        answer.await.inspect_err(|error| debug!(%error, "the database did not answer a probe"))?;
        borrowed.give_back();
        Ok(())
    }
}

/// A connection that goes back to the others only when it has answered. One that is left in the middle, because time
/// was up, would make its next user wait for the answer too.
struct Borrowed(Option<Pooled>);

impl Borrowed {
    fn give_back(mut self) {
        self.0 = None;
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        if let Some(pooled) = self.0.take() {
            drop(Pooled::take(pooled));
        }
    }
}
