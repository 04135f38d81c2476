//! A statement with its own transaction and settings, sent as one and answered as one.
//!
//! Promises that the three parts (open, work, commit) stand next to each other on the wire however
//! many tasks share the connection. They are all sent by the first poll, and the lock is held for
//! just that poll: a message of another task in between would join our transaction, or be committed
//! by it.

use std::pin::pin;
use std::sync::{Mutex, PoisonError};
use std::task::Poll;

use futures_util::FutureExt;
use futures_util::future::join3;
use tokio_postgres::{Client, Error};

/// Run `work` between `opening` and a commit, in one round trip.
///
/// `work` must send its one message when it is first polled, and nothing later.
pub(crate) async fn in_transaction<T>(
    client: &Client,
    order: &Mutex<()>,
    opening: &str,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let mut parts = pin!(join3(client.batch_execute(opening), work, client.batch_execute("commit")));
    let first = std::future::poll_fn(|cx| {
        let _next_to_each_other = order.lock().unwrap_or_else(PoisonError::into_inner);
        Poll::Ready(parts.poll_unpin(cx))
    });
    let (opened, worked, committed) = match first.await {
        Poll::Ready(done) => done,
        Poll::Pending => parts.await,
    };
    opened?;
    let value = worked?;
    // After an error of the work the commit is a rollback; after success its result counts.
    committed?;
    Ok(value)
}
