//! Waits at the start for a database that is not there yet, as when a machine starts everything at
//! once.
//!
//! Promises that only what time may cure is waited for: a wrong password or a missing database is
//! reported at once.

use std::time::{Duration, Instant};

use tracing::{info, warn};

use crate::exit::{Exit, Failure};

/// Between two tries. A try costs the database next to nothing.
const PAUSE: Duration = Duration::from_millis(500);
/// Between two lines of the log: who reads it must see that the wait goes on.
const REMINDER: Duration = Duration::from_secs(10);

/// Repeats `attempt` while the database is unreachable, for `patience` at most. An attempt that has
/// begun is not cut off: it has a limit of its own.
pub(super) async fn until_reachable<T>(
    patience: Duration,
    mut attempt: impl AsyncFnMut() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let begun = Instant::now();
    let mut next_line = Duration::ZERO;
    loop {
        let failure = match attempt().await {
            Ok(done) => {
                if next_line > Duration::ZERO {
                    info!(waited = ?begun.elapsed(), "the database is there");
                }
                return Ok(done);
            }
            Err(failure) => failure,
        };
        let waited = begun.elapsed();
        if failure.exit() != Exit::Unreachable || waited + PAUSE > patience {
            return Err(failure);
        }
        if waited >= next_line {
            warn!(?waited, at_most = ?patience, "waiting for the database: {}", failure.reasons());
            next_line = waited + REMINDER;
        }
        tokio::time::sleep(PAUSE).await;
    }
}
