//! What every request goes through: its body is taken in, its route is called, and it is answered in time.
//!
//! These are no layers of the router, for each of those costs every request half a dozen allocations and a box for its future:
//! of a message that is pushed alone they were about a fifth.
//!
//! Next: [`crate::body_door`], then [`crate::router`].

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use hyper::service::Service as HyperService;
use hyper_util::service::TowerToHyperService;
use tokio::time::timeout;

use crate::body_door::Doorway;
use crate::budget::Share;
use crate::problem::Problem;
use crate::router;

const TOO_LONG: Problem = Problem::new(
    StatusCode::SERVICE_UNAVAILABLE,
    "timeout",
    "it took too long; whether it was done is not known, and asking again with the same ids is safe",
);

/// Where requests come in. Clones share everything.
#[derive(Debug, Clone)]
pub(crate) struct Front(Arc<Parlour>);

#[derive(Debug)]
struct Parlour {
    doorway: Doorway,
    router: TowerToHyperService<Router>,
}

impl Front {
    pub(crate) fn new(doorway: Doorway, router: Router) -> Self {
        Self(Arc::new(Parlour { doorway, router: TowerToHyperService::new(router) }))
    }

    async fn answer(self, request: Request<Incoming>) -> Response {
        let (head, body) = request.into_parts();
        let mut share = Share::default();
        let answer = match self.0.doorway.take_in(body, &mut share).await {
            Ok(body) => self.route(Request::from_parts(head, Body::from(body))).await,
            Err(problem) => problem.into_response(),
        };
        // Of the budget it was in use until here.
        drop(share);
        answer
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

impl HyperService<Request<Incoming>> for Front {
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let front = self.clone();
        Box::pin(async move { Ok(front.answer(request).await) })
    }
}
