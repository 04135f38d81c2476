//! One client, from its first byte to its last.
//!
//! Promises deadlines for sending a request head and for taking an answer, a limit on the size of a
//! request head, and a graceful end: when the drain begins, an idle client is disconnected, a busy
//! one gets its answer first. A client that closes only its sending side is answered; a pop notices
//! that by itself, see [`crate::client`].
//!
//! Next: [`crate::http_service`].

use std::convert::Infallible;
use std::pin::{Pin, pin};

use axum::response::Response;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::bad_requests::Explained;
use crate::client::Client;
use crate::http_service::HttpService;
use crate::options::Limits;
use crate::stall::Stall;

/// Bytes of an incomplete request head that are kept in memory; hyper's default is 400 kB.
const MAX_HEAD: usize = 64 * 1024;
/// Bytes that are read and dropped after a client was refused in the middle of a body.
const DISCARDED_MAX: usize = 256 * 1024 * 1024;

pub(crate) async fn serve(stream: TcpStream, http: HttpService, limits: &Limits, drain: &CancellationToken) {
    let _ = stream.set_nodelay(true);
    let (client, socket) = Client::new(stream);
    let socket = TokioIo::new(Explained::new(Stall::new(socket, limits.write_timeout)));
    let mut builder = http1::Builder::new();
    // Without the timer hyper silently ignores the timeout of the request head.
    builder.timer(TokioTimer::new()).header_read_timeout(limits.head_timeout).max_buf_size(MAX_HEAD).half_close(true);
    let requests = Requests { http, client: client.clone() };
    let mut connection = pin!(builder.serve_connection(socket, requests));
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = drain.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        debug!(%error, "a client's connection ended early");
    }
    drain.run_until_cancelled(client.discard_rest(limits.body_timeout, DISCARDED_MAX)).await;
}

/// The requests of one client.
struct Requests {
    http: HttpService,
    client: Client,
}

impl Service<Request<Incoming>> for Requests {
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let (http, client) = (self.http.clone(), self.client.clone());
        Box::pin(async move { Ok(http.answer(request, &client).await) })
    }
}
