//! What makes a job the same as another, and what then happens to the second.

use std::time::Duration;

/// A job that keeps out others of its kind: while it has not ended, and for its window if it has
/// one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unique {
    pub(super) scope: String,
    pub(super) key: Option<String>,
    pub(super) window: Option<Duration>,
    pub(super) conflict: Conflict,
}

/// What happens to a job whose unique key another one has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Conflict {
    /// It is dropped, and the answer names the other.
    #[default]
    Keep,
    /// The other gets its arguments, if it still waits.
    ReplaceArgs,
    /// The other gets its time, if it still waits.
    Reschedule,
    /// It is refused.
    Error,
}

impl Conflict {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::ReplaceArgs => "replace",
            Self::Reschedule => "reschedule",
            Self::Error => "error",
        }
    }
}

impl Unique {
    /// One job for each kind and arguments, which are compared byte by byte.
    pub fn by_args() -> Self {
        Self::scoped("kind,args")
    }

    /// One job for each kind and key.
    pub fn by_key(key: impl Into<String>) -> Self {
        Self { key: Some(key.into()), ..Self::scoped("kind") }
    }

    /// One job for each combination of what is named: any of `kind`, `queue` and `args`, joined by
    /// commas. Anything else is refused when the job is enqueued.
    pub fn scoped(scope: impl Into<String>) -> Self {
        Self { scope: scope.into(), key: None, window: None, conflict: Conflict::default() }
    }

    /// Together with a key of one's own. Default: none.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// For how long after it is enqueued it keeps others out, even when it has ended. Default:
    /// zero, as long as it has not ended. At most 100 years.
    #[must_use]
    pub fn window(mut self, window: Duration) -> Self {
        self.window = Some(window);
        self
    }

    /// What happens to the second job. Default: [`Conflict::Keep`].
    #[must_use]
    pub fn on_conflict(mut self, conflict: Conflict) -> Self {
        self.conflict = conflict;
        self
    }
}
