//! Which path leads where.
//!
//! Has no layers: what holds for all routes is done by [`crate::front`].
//!
//! Next: [`crate::api`], [`crate::health`].

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;

use crate::problem::Problem;
use crate::service::Service;
use crate::{api, health};

const LIVEZ: &str = "/livez";
const READYZ: &str = "/readyz";
const HEALTH: &str = "/health";

/// `code` and sentence of Queen MQ 2.x, whose clients may look at them.
const NO_ROUTE: Problem = Problem::new(StatusCode::NOT_FOUND, "no_such_route", "Not Found");
pub(crate) const NO_METHOD: Problem =
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "this path does not know that method");

/// Whether a path's route sees to its own deadline, as long polls do, and answers about ourselves.
pub(crate) fn keeps_time(path: &str) -> bool {
    api::may_wait(path) || [LIVEZ, READYZ, HEALTH].contains(&path)
}

pub(crate) fn router(service: &Arc<Service>) -> Router {
    Router::new()
        .route(LIVEZ, get(health::livez))
        .route(READYZ, get(health::readyz))
        .route(HEALTH, get(health::health))
        .merge(api::routes())
        .fallback(async || NO_ROUTE)
        .method_not_allowed_fallback(async || NO_METHOD)
        .with_state(Arc::clone(service))
}
