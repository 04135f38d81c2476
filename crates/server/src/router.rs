//! Which path leads where.
//!
//! Next: [`crate::body_door`], then the route.

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::routing::get;

use crate::options::Limits;
use crate::prober::Readiness;
use crate::problem::Problem;
use crate::{body_door, health};

/// `code` and sentence of Queen MQ 2.x, whose clients may look at them.
const NO_ROUTE: Problem = Problem { status: StatusCode::NOT_FOUND, code: "no_such_route", sentence: "Not Found" };
const NO_METHOD: Problem = Problem {
    status: StatusCode::METHOD_NOT_ALLOWED,
    code: "method_not_allowed",
    sentence: "this path does not know that method",
};

pub(crate) fn router(readiness: Readiness, limits: Arc<Limits>) -> Router {
    Router::new()
        .route("/livez", get(health::livez))
        .route("/readyz", get(health::readyz))
        .route("/health", get(health::health))
        .fallback(async || NO_ROUTE)
        .method_not_allowed_fallback(async || NO_METHOD)
        .with_state(readiness)
        .layer(from_fn_with_state(limits, body_door::take_in))
}
