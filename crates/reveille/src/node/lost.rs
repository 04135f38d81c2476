//! Why a LISTEN session ended, or did not begin. For the log only: everything else sees the state
//! of the link.

use std::time::Duration;

use tokio::time::timeout;

use crate::database::error::DatabaseError;
use crate::database::outage::SaysAway;

#[derive(Debug, thiserror::Error)]
pub(super) enum Lost {
    #[error("could not open it")]
    Unopened(#[source] DatabaseError),
    #[error("a transaction pooler stands between, and LISTEN needs a session of its own: give a direct URL for LISTEN")]
    Pooler(#[source] Option<DatabaseError>),
    #[error("a statement on it failed")]
    Failed(#[from] tokio_postgres::Error),
    #[error("no answer or echo came within {0:?}; if this repeats, something between us swallows notifications")]
    Silent(Duration),
    #[error("it ended")]
    Ended,
}

impl From<DatabaseError> for Lost {
    fn from(error: DatabaseError) -> Self {
        match error {
            DatabaseError::Pooler { .. } => Self::Pooler(Some(error)),
            other => Self::Unopened(other),
        }
    }
}

impl Lost {
    /// For the log, with its causes.
    pub(super) fn as_error(&self) -> &(dyn std::error::Error + 'static) {
        self
    }

    /// Whether the server or the way to it is gone, and not only LISTEN.
    pub(super) fn is_outage(&self) -> bool {
        match self {
            Self::Unopened(error) => error.says_away(),
            Self::Failed(error) => error.is_closed(),
            Self::Ended => true,
            Self::Pooler(_) | Self::Silent(_) => false,
        }
    }

    /// Whether the server itself refused the statement; the session is still good.
    pub(super) fn was_refused(&self) -> bool {
        matches!(self, Self::Failed(error) if error.as_db_error().is_some())
    }
}

pub(super) async fn answered<T>(
    within: Duration,
    statement: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, Lost> {
    Ok(timeout(within, statement).await.map_err(|_| Lost::Silent(within))??)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_behind_a_pooler_says_what_to_do() {
        let text = Lost::Pooler(None).to_string();

        assert!(text.contains("transaction pooler") && text.contains("direct URL for LISTEN"), "{text}");
    }
}
