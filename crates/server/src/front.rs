//! What every request goes through: its body is taken in, its route is called, it is answered in time, and the answer is weighed.
//!
//! These are no layers of the router, for each of those costs every request half a dozen allocations and a box for its future:
//! of a message that is pushed alone they were about a fifth.
//!
//! Next: [`crate::body_door`], then [`crate::router`].

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::header::{CONNECTION, HeaderValue};
use axum::http::{Request, StatusCode};
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use hyper::service::Service as HyperService;
use hyper_util::service::TowerToHyperService;
use tokio::time::timeout;

use crate::body_door::Doorway;
use crate::client::Client;
use crate::problem::Problem;
use crate::service::Service;
use crate::{api, router, scales};

const TOO_LONG: Problem = Problem::new(
    StatusCode::SERVICE_UNAVAILABLE,
    "timeout",
    "it took too long; whether it was done is not known, and asking again with the same ids is safe",
);

/// Seen by a client that only stopped sending, or that sent too much behind a pop that waits.
const CLIENT_LEFT: Problem = Problem::new(
    StatusCode::BAD_REQUEST,
    "client_left",
    "a pop needs a connection that stays open and quiet; nothing was handed out",
);

/// Where requests come in. Clones share everything.
#[derive(Debug, Clone)]
pub(crate) struct Front(Arc<Parlour>);

#[derive(Debug)]
struct Parlour {
    doorway: Doorway,
    router: TowerToHyperService<Router>,
    service: Arc<Service>,
}

impl Front {
    pub(crate) fn new(doorway: Doorway, service: &Arc<Service>) -> Self {
        let router = TowerToHyperService::new(router::router(service));
        Self(Arc::new(Parlour { doorway, router, service: Arc::clone(service) }))
    }

    pub(crate) async fn answer(self, request: Request<Incoming>, client: &Client) -> Response {
        let (head, body) = request.into_parts();
        let body = match self.0.doorway.take_in(&head.method, body).await {
            Ok(body) => Body::from(body),
            Err(problem) => {
                client.leave_unread();
                return problem.into_response();
            }
        };
        let request = Request::from_parts(head, body);
        // A pop weighs its own answer, because it can give its messages back.
        if api::may_wait(request.uri().path()) {
            return self.pop(request, client).await;
        }
        let method = request.method().clone();
        let answer = self.route(request).await;
        scales::weigh(&self.0.service, &method, answer).await
    }

    /// Of a client that is gone nothing is waited for: what was claimed for it goes to the next one.
    async fn pop(&self, request: Request<Body>, client: &Client) -> Response {
        tokio::select! {
            biased;
            () = client.left() => {
                let mut answer = CLIENT_LEFT.into_response();
                answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                answer
            }
            answer = self.route(request) => answer,
        }
    }

    /// What its route answers, in time.
    async fn route(&self, request: Request<Body>) -> Response {
        let keeps_time = router::keeps_time(request.uri().path());
        let routed = self.0.router.call(request);
        let limit = self.0.doorway.limits.request_timeout;
        let routed = if keeps_time { Ok(routed.await) } else { timeout(limit, routed).await };
        match routed {
            Ok(answer) => answer.unwrap_or_else(|never| match never {}),
            Err(_) => TOO_LONG.into_response(),
        }
    }
}
