//! What every request goes through: its sender is judged, its body is taken in, its route is
//! called, it is answered in time, and the answer is weighed.
//!
//! Promises an answer also when a route panics. These are no layers of the router, for each of
//! those costs every request half a dozen allocations and a box for its future: of a message that
//! is pushed alone they were about a fifth.
//!
//! Next: [`crate::origin`], [`crate::body_door`], then [`crate::router`].

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::header::{CONNECTION, HeaderValue};
use axum::http::request::Parts;
use axum::http::{Request, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::FutureExt;
use hyper::body::{Body as _, Incoming};
use hyper::service::Service as HyperService;
use hyper_util::service::TowerToHyperService;
use tokio::time::timeout;
use tracing::error;

use crate::body_door::Doorway;
use crate::client::Client;
use crate::content::{self, Said};
use crate::fault::DEFECT;
use crate::origin::Callers;
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
    callers: Callers,
    doorway: Doorway,
    router: TowerToHyperService<Router>,
    service: Arc<Service>,
}

impl Front {
    pub(crate) fn new(callers: Callers, doorway: Doorway, service: &Arc<Service>) -> Self {
        let router = TowerToHyperService::new(router::router(service));
        Self(Arc::new(Parlour { callers, doorway, router, service: Arc::clone(service) }))
    }

    pub(crate) async fn answer(self, request: Request<Incoming>, client: &Client) -> Response {
        let (head, body) = request.into_parts();
        let whole = body.is_end_stream();
        let body = match self.take_in(&head, body).await {
            Ok(body) => Body::from(body),
            Err(problem) => {
                if !whole {
                    client.leave_unread();
                }
                return problem.into_response();
            }
        };
        client.was_read();
        let request = Request::from_parts(head, body);
        // A pop weighs its own answer, because it can give its messages back.
        if api::may_wait(request.uri().path()) {
            return self.pop(request, client).await;
        }
        let method = request.method().clone();
        let answer = self.route(request).await;
        scales::weigh(&self.0.service, &method, answer).await
    }

    /// Of a client that is gone nothing is waited for: what was claimed for it goes to the next
    /// one.
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

    /// The body of a request that may be asked.
    async fn take_in(&self, head: &Parts, body: Incoming) -> Result<Bytes, Problem> {
        self.0.callers.admit(head)?;
        let said = content::judge(&head.headers, &body)?;
        let body = self.0.doorway.take_in(&head.method, body).await?;
        if said == Said::Other && !body.is_empty() { Err(content::NOT_JSON) } else { Ok(body) }
    }

    /// What its route answers, in time.
    async fn route(&self, request: Request<Body>) -> Response {
        let keeps_time = router::keeps_time(request.uri().path());
        // What a route left half done when it panicked is never touched again: it is dropped with
        // its future.
        let routed = AssertUnwindSafe(self.0.router.call(request)).catch_unwind();
        let limit = self.0.doorway.limits.request_timeout;
        let routed = if keeps_time { Ok(routed.await) } else { timeout(limit, routed).await };
        match routed {
            Ok(Ok(answer)) => answer.unwrap_or_else(|never| match never {}),
            Ok(Err(panic)) => self.after_panic(&*panic),
            Err(_) => TOO_LONG.into_response(),
        }
    }

    fn after_panic(&self, panic: &(dyn Any + Send)) -> Response {
        let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        error!(message_of_panic = text.unwrap_or("none"), "a request panicked: this is a defect, please report it");
        self.0.service.figures.panics.add(1);
        DEFECT.into_response()
    }
}

#[cfg(test)]
mod tests {
    use reveille::database::{Database, DatabaseOptions};
    use reveille::messages::MessagesOptions;
    use reveille_testkit::TestDatabase;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;
    use tokio::task::JoinSet;
    use tokio_util::sync::CancellationToken;

    use crate::ServerOptions;
    use crate::router::tests::PANICS;

    /// What is answered to all of them, one after the other on one connection.
    async fn answers(stream: &mut TcpStream, paths: [&str; 3]) -> String {
        for path in paths {
            let last = if path == paths[2] { "connection: close\r\n" } else { "" };
            let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n{last}\r\n");
            stream.write_all(request.as_bytes()).await.unwrap();
        }
        let mut all = String::new();
        stream.read_to_string(&mut all).await.unwrap();
        all
    }

    #[tokio::test]
    async fn a_route_that_panics_is_answered_and_counted() {
        let db = TestDatabase::new().await;
        let database = Database::connect(DatabaseOptions::new(db.url())).await.unwrap();
        let door = ServerOptions::default().listen(([127, 0, 0, 1], 0).into()).bind().await.unwrap();
        let (server, handle) = door.serve(&database, MessagesOptions::default());
        let mut serving = JoinSet::new();
        serving.spawn(server.run(CancellationToken::new()));
        let mut stream = TcpStream::connect(handle.address()).await.unwrap();

        let said = answers(&mut stream, [PANICS, "/api/v1/status", "/metrics"]).await;

        assert!(said.starts_with("HTTP/1.1 500 "), "{said}");
        assert!(said.contains(r#""code":"internal""#), "{said}");
        assert!(said.contains(r#""panics":1"#), "{said}");
        assert!(said.contains("\nreveille_panics_total 1\n"), "{said}");
    }
}
