//! Whether PostgreSQL answers, so that an outage is two lines of the log: one when it begins, one
//! when it is over.
//!
//! Every part that uses the database meets an outage by itself and tries again by itself. Their own
//! lines would repeat the same fact many times a second, so they are at the level debug
//! ([`warn_unless_away`]).

use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tracing::{info, warn};

use super::error::DatabaseError;

/// An answer this soon after the beginning says nothing: a server that shuts down ends its sessions
/// one after the other.
const SETTLED: Duration = Duration::from_secs(1);

/// What the connections to one address have seen.
#[derive(Debug)]
pub(crate) struct Outage {
    state: Mutex<State>,
    /// The same as the state, for the path of every statement.
    is_away: AtomicBool,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// No connection was opened yet: failures are their callers' to report.
    Untried,
    There {
        since: Instant,
    },
    Away {
        since: Instant,
    },
}

impl Outage {
    pub(crate) fn new() -> Self {
        Self { state: Mutex::new(State::Untried), is_away: AtomicBool::new(false) }
    }

    /// A session was opened.
    pub(crate) fn opened(&self) {
        let mut state = self.state();
        let now = Instant::now();
        match *state {
            State::There { .. } => return,
            State::Untried => {}
            State::Away { since } => info!(outage = ?now.duration_since(since), "PostgreSQL answers again"),
        }
        *state = State::There { since: now };
        self.is_away.store(false, Ordering::Relaxed);
    }

    /// A statement was answered. After a single session broke, no other needs to be opened.
    pub(crate) fn answered(&self) {
        if self.is_away.load(Ordering::Relaxed)
            && matches!(*self.state(), State::Away { since } if since.elapsed() > SETTLED)
        {
            self.opened();
        }
    }

    /// No session could be opened, or one has just ended.
    pub(crate) fn failed(&self, error: &(dyn Error + 'static)) {
        self.broke(Instant::now(), error);
    }

    /// A session that was opened at `opened` is broken. One that is older than the last outage
    /// broke in it, and only now somebody noticed.
    pub(crate) fn broke(&self, opened: Instant, error: &(dyn Error + 'static)) {
        let mut state = self.state();
        if matches!(*state, State::There { since } if opened >= since) {
            warn!(error, "PostgreSQL does not answer, trying again until it does");
            *state = State::Away { since: Instant::now() };
            self.is_away.store(true, Ordering::Relaxed);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What an error says about the database itself.
pub(crate) trait SaysAway {
    /// Whether it is one of an outage, which [`Outage`] reports.
    fn says_away(&self) -> bool;
}

impl SaysAway for DatabaseError {
    fn says_away(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Lost { .. })
    }
}

/// A line about an error that the part deals with by itself: a warning, unless the error is one of
/// an outage.
macro_rules! warn_unless_away {
    ($error:expr, $($line:tt)+) => {
        if $crate::database::outage::SaysAway::says_away($error) {
            tracing::debug!($($line)+);
        } else {
            tracing::warn!($($line)+);
        }
    };
}
pub(crate) use warn_unless_away;

#[cfg(test)]
mod tests {
    use super::*;

    fn is_away(outage: &Outage) -> bool {
        outage.is_away.load(Ordering::Relaxed)
    }

    #[test]
    fn a_session_from_before_an_outage_begins_no_second_one() {
        let (outage, error) = (Outage::new(), std::fmt::Error);
        outage.opened();
        let old = Instant::now();
        outage.failed(&error);
        assert!(is_away(&outage));
        outage.opened();

        outage.broke(old, &error);

        assert!(!is_away(&outage));
        outage.broke(Instant::now(), &error);
        assert!(is_away(&outage));
    }

    #[test]
    fn a_server_that_was_never_reached_has_no_outage() {
        let outage = Outage::new();

        outage.failed(&std::fmt::Error);

        assert!(!is_away(&outage));
    }

    #[test]
    fn an_answer_in_the_middle_of_a_shutdown_does_not_end_the_outage() {
        let outage = Outage::new();
        outage.opened();
        outage.failed(&std::fmt::Error);

        outage.answered();

        assert!(is_away(&outage));
    }
}
