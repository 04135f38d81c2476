//! Which path leads where.
//!
//! Has no layers: [`crate::http_service`] does what all routes have in common.
//!
//! Next: [`crate::api`], [`crate::health`].

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;

use crate::context::Context;
use crate::problem::Problem;
use crate::{api, health};

const LIVEZ: &str = "/livez";
const READYZ: &str = "/readyz";
const HEALTH: &str = "/health";
const METRICS: &str = "/metrics";

/// Paths where a GET changes nothing, whatever its query. Pops claim, so they are not among these.
const READING: [&str; 9] = [
    LIVEZ,
    READYZ,
    HEALTH,
    METRICS,
    "/api/v1/status",
    "/api/v1/resources/namespaces",
    "/api/v1/resources/tasks",
    "/api/v1/system/maintenance",
    "/api/v1/system/maintenance/pop",
];
/// The same for every path below.
const READING_BELOW: [&str; 5] =
    ["/api/v1/resources/queues", "/api/v1/consumer-groups", "/api/v1/dlq", "/api/v1/messages", "/api/v1/traces"];

/// `code` and sentence of Queen MQ 2.x, whose clients may compare them.
const NO_ROUTE: Problem = Problem::new(StatusCode::NOT_FOUND, "no_such_route", "Not Found");
pub(crate) const NO_METHOD: Problem =
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "this path does not accept that method");

/// Whether a path's route keeps its own deadline, as long polls and health checks do.
pub(crate) fn keeps_time(path: &str) -> bool {
    api::may_wait(path) || [LIVEZ, READYZ, HEALTH].contains(&path)
}

/// Whether requests to this path may use any `Host`: probes and scrapers have names of their own
/// for this server, and the answers show nothing about messages.
pub(crate) fn is_probe(path: &str) -> bool {
    path == LIVEZ || path == READYZ || is_at_or_below(path, METRICS)
}

/// Whether a GET of this path only reads, so that a link of any page may lead to it.
pub(crate) fn only_reads(path: &str) -> bool {
    READING.contains(&path)
        || is_at_or_below(path, METRICS)
        || READING_BELOW.iter().any(|root| is_at_or_below(path, root))
}

fn is_at_or_below(path: &str, root: &str) -> bool {
    path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

pub(crate) fn router(context: &Arc<Context>) -> Router {
    let router = Router::new()
        .route(LIVEZ, get(health::livez))
        .route(READYZ, get(health::readyz))
        .route(HEALTH, get(health::health))
        .merge(api::routes())
        .fallback(async || NO_ROUTE)
        .method_not_allowed_fallback(async || NO_METHOD);
    #[cfg(test)]
    let router = router.route(tests::PANICS, get(tests::panics));
    router.with_state(Arc::clone(context))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A route that panics, as none of ours should.
    pub(crate) const PANICS: &str = "/panics";

    pub(crate) async fn panics() -> Problem {
        panic!("as it was asked to")
    }

    #[test]
    fn a_pop_is_not_a_path_that_only_reads() {
        for path in ["/api/v1/pop", "/api/v1/pop/queue/q", "/api/v1/pop/queue/q/partition/p", "/api/v1/push", "/", ""] {
            assert!(!only_reads(path), "{path}");
        }
        assert!(only_reads("/metrics/prometheus") && only_reads("/api/v1/dlq") && !only_reads("/api/v1/dlqx"));
        assert!(!is_probe("/health") && !is_probe("/metricsx"));
    }
}
