//! Whether activities of sessions were due lately.
//!
//! It saves a statement and decides nothing: the claim that serves all slots at once takes nothing
//! while such activities are due, so it is not tried first then.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// For how long the claim for all slots is not tried.
const PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(super) struct Sessions {
    seen_due: Mutex<Option<Instant>>,
}

impl Sessions {
    pub(super) fn seen_due(&self) {
        *self.seen_due.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    pub(super) fn are_due(&self) -> bool {
        let seen = *self.seen_due.lock().unwrap_or_else(PoisonError::into_inner);
        seen.is_some_and(|at| at.elapsed() < PAUSE)
    }
}
