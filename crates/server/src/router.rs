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

/// `code` and sentence of Queen MQ 2.x, whose clients may look at them.
const NO_ROUTE: Problem = Problem::new(StatusCode::NOT_FOUND, "no_such_route", "Not Found");
pub(crate) const NO_METHOD: Problem =
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "this path does not know that method");

pub(crate) fn router(service: &Arc<Service>) -> Router {
    Router::new()
        .route("/livez", get(health::livez))
        .route("/readyz", get(health::readyz))
        .route("/health", get(health::health))
        .merge(api::routes())
        .fallback(async || NO_ROUTE)
        .method_not_allowed_fallback(async || NO_METHOD)
        .with_state(Arc::clone(service))
}
