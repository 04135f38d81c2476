//! Finds out how a transaction ended whose commit was never answered.
//!
//! Asks `pg_xact_status` on a new connection. While the server still holds the old session (the
//! commit never arrived, and the server has not noticed that we are gone), the session is ended by
//! its transaction id: the outcome must not change after we have read it. Gives up after a while
//! rather than guess.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::connector::Purpose;
use super::error::DatabaseError;
use super::shared::Shared;
use super::statements::{END_TRANSACTION, TRANSACTION_STATUS};

/// A restart of the server takes a few seconds; the caller of the commit waits all the while.
const PATIENCE: Duration = Duration::from_secs(15);
const PAUSE: Duration = Duration::from_millis(100);

/// What was found out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resolution {
    Committed,
    Aborted,
    Unknown,
}

/// Which transaction, and in which history.
#[derive(Debug, Clone)]
pub(crate) struct Xid {
    pub(crate) id: String,
    /// After a failover the same id may belong to another transaction.
    pub(crate) timeline: String,
}

/// Ask until there is an answer, for at most [`PATIENCE`].
pub(crate) async fn resolve(shared: &Arc<Shared>, xid: &Xid) -> Resolution {
    let deadline = Instant::now() + PATIENCE;
    let asking = async {
        loop {
            match ask(shared, xid).await {
                Ok(Some(resolution)) => return resolution,
                Ok(None) => {}
                Err(error) if error.is_transient() => tracing::debug!(%error, "could not ask how a commit ended yet"),
                Err(_) => return Resolution::Unknown,
            }
            // Ask again when the server is back, or the old session is gone; jitter, as many may
            // have lost it together.
            sleep(PAUSE.mul_f64(0.5 + fastrand::f64())).await;
        }
    };
    timeout(deadline - Instant::now(), asking).await.unwrap_or(Resolution::Unknown)
}

/// Asks once; `None` while the transaction is still in progress.
async fn ask(shared: &Arc<Shared>, xid: &Xid) -> Result<Option<Resolution>, DatabaseError> {
    let connection = shared.connect(Purpose::Resolve).await?;
    let row = connection.query_opt(&TRANSACTION_STATUS, &[&xid.id]).await?;
    let row = row.filter(|row| row.get::<_, &str>("timeline") == xid.timeline);
    let status: Option<String> = row.and_then(|row| row.get("status"));
    match status.as_deref() {
        Some("committed") => Ok(Some(Resolution::Committed)),
        Some("aborted") => Ok(Some(Resolution::Aborted)),
        Some(_) => connection.query(&END_TRANSACTION, &[&xid.id]).await.map(|_| None),
        // Another history (the server failed over), or too old to be remembered.
        None => Ok(Some(Resolution::Unknown)),
    }
}
