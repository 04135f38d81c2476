//! Keeps one connection moving until it is no longer used.
//!
//! Ends when the client half is dropped (after what was sent is answered), when the connection
//! breaks, or when the database closes: then what is in flight gets a moment to finish. Notices of
//! the server are only logged.

use std::future::poll_fn;
use std::time::Duration;

use tokio::time::timeout;
use tokio_postgres::AsyncMessage;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::debug;

use super::connector::Wire;

/// How long statements in flight may hold up a close.
pub(crate) const GRACE: Duration = Duration::from_secs(5);

/// Drive `wire`; `work` counts what is in flight on it.
pub(crate) async fn drive(mut wire: Wire, work: TaskTracker, closing: CancellationToken) {
    let finished = async {
        closing.cancelled().await;
        work.close();
        let _ = timeout(GRACE, work.wait()).await;
    };
    tokio::select! {
        () = run(&mut wire) => {}
        () = finished => {}
    }
}

async fn run(wire: &mut Wire) {
    while let Some(message) = poll_fn(|cx| wire.poll_message(cx)).await {
        match message {
            Ok(AsyncMessage::Notice(notice)) => debug!(message = notice.message(), "PostgreSQL has a notice"),
            Ok(_) => {}
            // Callers that wait for an answer get the error too, and report it.
            Err(error) => {
                debug!(%error, "a connection broke");
                return;
            }
        }
    }
}
