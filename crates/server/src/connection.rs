//! One client, from its first byte to its last.
//!
//! Promises deadlines for the head of a request and for taking an answer, a bound on the head's
//! size, and a graceful end: when the drain begins, an idle client is let go, a busy one gets its
//! answer first. A client that only stops sending is answered; a pop notices for itself, see
//! [`crate::client`].
//!
//! Next: [`crate::front`].

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

use crate::bad_heads::Explained;
use crate::client::Client;
use crate::front::Front;
use crate::options::Limits;
use crate::stall::Stall;

/// How much of a head is kept in memory while the rest of it is on its way; hyper would keep 400
/// kB.
const MAX_HEAD: usize = 64 * 1024;
/// How much is heard out of a client that was refused in the middle of a body.
const HEARD_OUT: usize = 256 * 1024 * 1024;

pub(crate) async fn serve(stream: TcpStream, front: Front, limits: &Limits, drain: &CancellationToken) {
    let _ = stream.set_nodelay(true);
    let (client, socket) = Client::new(stream);
    let socket = TokioIo::new(Explained::new(Stall::new(socket, limits.write_timeout)));
    let mut http = http1::Builder::new();
    // Without the timer hyper's limit on heads is silently none.
    http.timer(TokioTimer::new()).header_read_timeout(limits.head_timeout).max_buf_size(MAX_HEAD).half_close(true);
    let requests = Requests { front, client: client.clone() };
    let mut connection = pin!(http.serve_connection(socket, requests));
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
    drain.run_until_cancelled(client.hear_out(limits.body_timeout, HEARD_OUT)).await;
}

/// The requests of one client.
struct Requests {
    front: Front,
    client: Client,
}

impl Service<Request<Incoming>> for Requests {
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let (front, client) = (self.front.clone(), self.client.clone());
        Box::pin(async move { Ok(front.answer(request, &client).await) })
    }
}
