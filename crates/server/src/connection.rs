//! One client, from its first byte to its last.
//!
//! Promises deadlines for the head of a request and for taking an answer, a bound on the head's size, and a graceful
//! end: when the drain begins, an idle client is let go, a busy one gets its answer first.
//!
//! Next: [`crate::front`].

use std::pin::pin;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::bad_heads::Explained;
use crate::front::Front;
use crate::options::Limits;
use crate::stall::Stall;

/// How much of a head is kept in memory while the rest of it is on its way; hyper would keep 400 kB.
const MAX_HEAD: usize = 64 * 1024;

pub(crate) async fn serve(stream: TcpStream, front: Front, limits: &Limits, drain: &CancellationToken) {
    let _ = stream.set_nodelay(true);
    let stream = TokioIo::new(Explained::new(Stall::new(stream, limits.write_timeout)));
    let mut http = http1::Builder::new();
    // Without the timer hyper's limit on heads is silently none.
    http.timer(TokioTimer::new()).header_read_timeout(limits.head_timeout).max_buf_size(MAX_HEAD);
    let mut connection = pin!(http.serve_connection(stream, front));
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
}
