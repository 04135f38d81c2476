//! Three health checks: alive, ready, and both in the format of Queen MQ.
//!
//! `livez` never touches the database: a node that restarts because PostgreSQL is away makes things
//! worse. The other two use [`crate::prober`], which sends the database at most one query a second
//! however many probes there are. The query has a connection of its own, so a node with slow
//! callers does not count as a node without a database.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use reveille::database::{Database, DatabaseError};
use serde_json::{Value, json};
use tokio::time::timeout;
use tracing::debug;

use crate::context::Context;
use crate::problem::{Problem, come_back_later};

/// A load balancer's probe gives up after a few seconds; it should get a "no" before that.
const PATIENCE: Duration = Duration::from_secs(2);

const NOT_READY: Problem =
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "database_unavailable", "the database does not answer");

pub(crate) async fn livez() -> Json<Value> {
    Json(json!({ "status": "alive" }))
}

pub(crate) async fn readyz(State(context): State<Arc<Context>>) -> Response {
    if context.readiness.is_ready().await {
        Json(json!({ "status": "ready" })).into_response()
    } else {
        NOT_READY.into_response()
    }
}

pub(crate) async fn health(State(context): State<Arc<Context>>) -> Response {
    let ready = context.readiness.is_ready().await;
    let (status, database) = if ready { ("healthy", "connected") } else { ("unhealthy", "disconnected") };
    let body = Json(json!({
        "status": status,
        "database": database,
        "server": "reveille",
        "version": env!("CARGO_PKG_VERSION"),
    }));
    if ready { body.into_response() } else { come_back_later(body) }
}

/// Checks whether the database answers.
#[derive(Debug)]
pub(crate) struct DatabaseProbe {
    database: Database,
}

impl DatabaseProbe {
    pub(crate) fn new(database: Database) -> Self {
        Self { database }
    }

    fn is_ok_or_log(answer: Result<(), DatabaseError>) -> bool {
        answer.inspect_err(|error| debug!(%error, "the database did not answer a probe")).is_ok()
    }
}

impl crate::prober::Probe for DatabaseProbe {
    async fn answers(&self) -> bool {
        // One connection may have died unnoticed while the database is well: a second one is tried.
        let twice = async { self.database.ping().await.is_ok() || Self::is_ok_or_log(self.database.ping().await) };
        timeout(PATIENCE, twice).await.unwrap_or(false)
    }
}
