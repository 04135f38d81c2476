//! The steps of every request: check its sender, read its body, call its route within a deadline,
//! and reserve room for its answer.
//!
//! Promises an answer even when a route panics. These steps are not layers of the router, because
//! each layer costs every request half a dozen allocations and a boxed future: about a fifth of the
//! cost of pushing one message.
//!
//! Next: [`crate::origin`], [`crate::request_body`], then [`crate::router`].

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
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use tokio::time::timeout;
use tracing::error;

use crate::client::Client;
use crate::content::{self, Declared};
use crate::context::Context;
use crate::fault::DEFECT;
use crate::origin::Callers;
use crate::problem::Problem;
use crate::request_body::BodyReader;
use crate::{api, router, scales};

const TOO_LONG: Problem = Problem::new(
    StatusCode::SERVICE_UNAVAILABLE,
    "timeout",
    "it took too long; whether it was done is not known, and asking again with the same ids is safe",
);

/// For a client that closed only its sending side, or that sent too much behind its waiting pop.
const CLIENT_LEFT: Problem = Problem::new(
    StatusCode::BAD_REQUEST,
    "client_left",
    "a pop needs a connection that stays open and quiet; nothing was handed out",
);

/// Answers the requests of all clients. Clones share everything.
#[derive(Debug, Clone)]
pub(crate) struct HttpService {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    callers: Callers,
    bodies: BodyReader,
    router: TowerToHyperService<Router>,
    context: Arc<Context>,
}

impl HttpService {
    pub(crate) fn new(callers: Callers, bodies: BodyReader, context: &Arc<Context>) -> Self {
        let router = TowerToHyperService::new(router::router(context));
        Self { inner: Arc::new(Inner { callers, bodies, router, context: Arc::clone(context) }) }
    }

    pub(crate) async fn answer(self, request: Request<Incoming>, client: &Client) -> Response {
        let (head, body) = request.into_parts();
        let has_no_body = body.is_end_stream();
        let body = match self.read_body(&head, body).await {
            Ok(body) => Body::from(body),
            Err(problem) => {
                if !has_no_body {
                    client.leave_unread();
                }
                return problem.into_response();
            }
        };
        client.was_read();
        let request = Request::from_parts(head, body);
        // A pop reserves the room for its answer itself, because it can give its messages back.
        if api::may_wait(request.uri().path()) {
            return self.pop(request, client).await;
        }
        let method = request.method().clone();
        let answer = self.route(request).await;
        scales::weigh(&self.inner.context, &method, answer).await
    }

    /// The pop ends when its client leaves, and its lost claim goes to the next consumer.
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

    /// The body, if this sender may send this request.
    async fn read_body(&self, head: &Parts, body: Incoming) -> Result<Bytes, Problem> {
        self.inner.callers.admit(head)?;
        let declared = content::judge(&head.headers, &body)?;
        let body = self.inner.bodies.read(&head.method, body).await?;
        if declared == Declared::Other && !body.is_empty() { Err(content::NOT_JSON) } else { Ok(body) }
    }

    /// The answer of the request's route, within the deadline.
    async fn route(&self, request: Request<Body>) -> Response {
        let keeps_time = router::keeps_time(request.uri().path());
        // Unwind safe: whatever a route left half done when it panicked is dropped with its future.
        let routed = AssertUnwindSafe(self.inner.router.call(request)).catch_unwind();
        let limit = self.inner.bodies.limits.request_timeout;
        let routed = if keeps_time { Ok(routed.await) } else { timeout(limit, routed).await };
        match routed {
            Ok(Ok(answer)) => answer.unwrap_or_else(|never| match never {}),
            Ok(Err(panic)) => self.after_panic(&*panic),
            Err(_) => TOO_LONG.into_response(),
        }
    }

    fn after_panic(&self, panic: &(dyn Any + Send)) -> Response {
        let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        error!(
            message_of_panic = text.unwrap_or("none"),
            "a request panicked: this is a bug in Reveille, please report it"
        );
        self.inner.context.figures.panics.add(1);
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

    /// The answers to three requests, one after the other on one connection.
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
        let bound = ServerOptions::default().listen(([127, 0, 0, 1], 0).into()).bind().await.unwrap();
        let (server, handle) = bound.serve(&database, MessagesOptions::default());
        let mut serving = JoinSet::new();
        serving.spawn(server.run(CancellationToken::new()));
        let mut stream = TcpStream::connect(handle.address()).await.unwrap();

        let answers = answers(&mut stream, [PANICS, "/api/v1/status", "/metrics"]).await;

        assert!(answers.starts_with("HTTP/1.1 500 "), "{answers}");
        assert!(answers.contains(r#""code":"internal""#), "{answers}");
        assert!(answers.contains(r#""panics":1"#), "{answers}");
        assert!(answers.contains("\nreveille_panics_total 1\n"), "{answers}");
    }
}
