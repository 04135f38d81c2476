//! Three answers about ourselves: alive, ready, and both in the words of Queen MQ.
//!
//! `livez` never touches the database: a node that restarts because PostgreSQL is away makes things
//! worse. The other two ask [`crate::prober`], which asks the database at most once a second
//! however many probes there are, on a connection that nothing else uses: a node whose callers are
//! slow is not a node without a database.

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

use crate::problem::{Problem, come_back_later};
use crate::service::Service;

/// A probe gives up after a few seconds; it should hear "no" before that.
const PATIENCE: Duration = Duration::from_secs(2);

const NOT_READY: Problem =
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "database_unavailable", "the database does not answer");

pub(crate) async fn livez() -> Json<Value> {
    Json(json!({ "status": "alive" }))
}

pub(crate) async fn readyz(State(service): State<Arc<Service>>) -> Response {
    if service.readiness.is_ready().await {
        Json(json!({ "status": "ready" })).into_response()
    } else {
        NOT_READY.into_response()
    }
}

pub(crate) async fn health(State(service): State<Arc<Service>>) -> Response {
    let ready = service.readiness.is_ready().await;
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
        let twice = async { self.database.ping().await.is_ok() || Self::told(self.database.ping().await) };
        timeout(PATIENCE, twice).await.unwrap_or(false)
    }
}

impl Look {
    fn told(answer: Result<(), DatabaseError>) -> bool {
        answer.inspect_err(|error| debug!(%error, "the database did not answer a probe")).is_ok()
    }
}
