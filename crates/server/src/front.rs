//! The first step of every request: its body is taken in, then it goes to its route.
//!
//! Behind it stands the router, whose layers cost a request some forty allocations, a third of all. A push of one message is
//! most of what a busy server is asked and has little else to do, so it goes to its route directly, under the same deadline.
//!
//! Next: [`crate::router`], or [`crate::api::push`].

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{Method, Request};
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use hyper::service::Service as HyperService;
use hyper_util::service::TowerToHyperService;

use crate::api;
use crate::body_door::Doorway;
use crate::budget::Share;
use crate::service::Service;

/// Where requests come in. Clones share everything.
#[derive(Debug, Clone)]
pub(crate) struct Front(Arc<Parlour>);

#[derive(Debug)]
struct Parlour {
    doorway: Doorway,
    service: Arc<Service>,
    router: TowerToHyperService<Router>,
}

impl Front {
    pub(crate) fn new(doorway: Doorway, service: Arc<Service>, router: Router) -> Self {
        Self(Arc::new(Parlour { doorway, service, router: TowerToHyperService::new(router) }))
    }

    async fn answer(self, request: Request<Incoming>) -> Response {
        let (head, body) = request.into_parts();
        let mut share = Share::default();
        let answer = match self.0.doorway.take_in(body, &mut share).await {
            Ok(body) if is_push(&head) => {
                // It lies in the connection's buffer, which is needed for what the client sends meanwhile.
                drop(head);
                api::push(&self.0.service, body).await
            }
            Ok(body) => self.route(Request::from_parts(head, Body::from(body))).await,
            Err(problem) => problem.into_response(),
        };
        // Of the budget it was in use until here.
        drop(share);
        answer
    }

    async fn route(&self, request: Request<Body>) -> Response {
        self.0.router.call(request).await.unwrap_or_else(|never| match never {})
    }
}

fn is_push(head: &Parts) -> bool {
    head.method == Method::POST && head.uri.path() == api::PUSH
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
