//! The routes of queues, in the words of Queen MQ's clients.
//!
//! Each file is one kind of request: it parses the request, calls one verb of the library, and
//! writes the result. Holds no queue logic. `docs/compatibility.md` lists the differences from
//! Queen.

mod ack;
mod answer;
mod configure;
mod dead;
mod groups;
mod lease;
mod maintenance;
mod messages;
pub(crate) mod metrics;
mod pop;
mod push;
mod queues;
mod status;
mod traces;
mod transaction;

use std::sync::Arc;

use axum::Router;
use axum::routing::{delete, get, post};

use crate::context::Context;
use crate::problem::Problem;
use crate::router::NO_METHOD;

const POP: &str = "/api/v1/pop";

/// Whether a request to this path may wait for messages, and so has a deadline of its own.
pub(crate) fn may_wait(path: &str) -> bool {
    path.starts_with(POP)
}

pub(crate) fn routes() -> Router<Arc<Context>> {
    prompt().merge(waiting())
}

/// [`may_wait`] recognises these routes by the beginning of their path.
fn waiting() -> Router<Arc<Context>> {
    Router::new()
        .route(POP, get(pop::space).head(no_head))
        .route("/api/v1/pop/queue/{queue}", get(pop::queue).head(no_head))
        .route("/api/v1/pop/queue/{queue}/partition/{partition}", get(pop::partition).head(no_head))
}

fn prompt() -> Router<Arc<Context>> {
    Router::new()
        .route("/api/v1/push", post(push::push))
        .route("/api/v1/ack", post(ack::one))
        .route("/api/v1/ack/batch", post(ack::batch))
        .route("/api/v1/transaction", post(transaction::transaction))
        .route("/api/v1/lease/{lease}/extend", post(lease::extend))
        .route("/api/v1/configure", post(configure::configure))
        .route("/api/v1/resources/queues", get(queues::list))
        .route("/api/v1/resources/queues/{queue}", get(queues::one).delete(queues::delete))
        .route("/api/v1/queues/{queue}/clear", delete(queues::clear))
        .route("/api/v1/resources/namespaces", get(queues::namespaces))
        .route("/api/v1/resources/tasks", get(queues::tasks))
        .route("/api/v1/dlq", get(dead::list).delete(dead::delete_all))
        .route("/api/v1/dlq/redrive", post(dead::redrive))
        .route("/api/v1/dlq/{letter}/replay", post(dead::redrive_one))
        .route("/api/v1/dlq/{letter}", delete(dead::delete_one))
        .route("/api/v1/messages", get(messages::list))
        .route("/api/v1/messages/{partition}/{transaction}", get(messages::one).delete(messages::delete))
        .route("/api/v1/traces", post(traces::add))
        .route("/api/v1/traces/names", get(traces::names))
        .route("/api/v1/traces/by-name/{name}", get(traces::by_name))
        .route("/api/v1/traces/{partition}/{transaction}", get(traces::of_message))
        .route("/api/v1/consumer-groups", get(groups::list))
        .route("/api/v1/consumer-groups/lagging", get(groups::lagging))
        .route("/api/v1/stats/refresh", post(groups::refresh))
        .route("/api/v1/consumer-groups/{group}", get(groups::one).delete(groups::delete))
        .route("/api/v1/consumer-groups/{group}/subscription", post(groups::subscription))
        .route("/api/v1/consumer-groups/{group}/queues/{queue}", delete(groups::delete_from))
        .route("/api/v1/consumer-groups/{group}/queues/{queue}/seek", post(groups::seek))
        .route(
            "/api/v1/consumer-groups/{group}/queues/{queue}/partitions/{partition}/seek",
            post(groups::seek_partition),
        )
        .route("/api/v1/system/maintenance", get(maintenance::pushes).post(maintenance::switch_pushes))
        .route("/api/v1/system/maintenance/pop", get(maintenance::pops).post(maintenance::switch_pops))
        .route("/api/v1/status", get(status::status))
        .route("/metrics", get(metrics::metrics))
        .route("/metrics/prometheus", get(metrics::metrics))
}

/// Without this, a `HEAD` request would lease messages whose client never sees them.
async fn no_head() -> Problem {
    NO_METHOD
}
