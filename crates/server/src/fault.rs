//! Translates errors of the library into HTTP.
//!
//! Promises that a fault of the request is a 4xx with a sentence about the request, that a fault
//! which may pass by itself is a 429 or 503, and that an answer shows nothing internal: details for
//! operators are in the log.

use axum::http::StatusCode;
use reveille::database::DatabaseError;
use reveille::messages::MessagesError;
use tracing::{debug, error};

use crate::problem::Problem;

// The consumers of Queen's Python client end on every error whose sentence does not contain
// "connection" or "timeout"; after the others they wait a second and try again.
pub(crate) const DATABASE_AWAY: Problem = Problem::new(
    StatusCode::SERVICE_UNAVAILABLE,
    "database_unavailable",
    "no connection to the database, or no answer from it; nothing was acknowledged",
);
pub(crate) const OVERLOADED: Problem = Problem::new(
    StatusCode::TOO_MANY_REQUESTS,
    "overloaded",
    "too much is asked of this server at once; keep the connection and ask again in a second",
);
const UNKNOWN_OUTCOME: Problem = Problem::new(
    StatusCode::SERVICE_UNAVAILABLE,
    "unknown_outcome",
    "the database went away during the commit; ask again with the same transaction ids",
);
const CLOSING: Problem =
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "closing", "this server is closing; ask another one");
const REFUSED_VALUES: Problem =
    Problem::new(StatusCode::BAD_REQUEST, "invalid_request", "the database cannot hold these values");
pub(crate) const DEFECT: Problem =
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "this server could not do it; its log says why");

impl From<MessagesError> for Problem {
    fn from(error: MessagesError) -> Self {
        let (status, code) = match &error {
            MessagesError::Database(error) => return of_database(error),
            MessagesError::Name(_) => (StatusCode::BAD_REQUEST, "invalid_name"),
            MessagesError::NoQueue { .. } => (StatusCode::NOT_FOUND, "no_such_queue"),
            MessagesError::NoGroup { .. } => (StatusCode::NOT_FOUND, "no_such_group"),
            MessagesError::NoPartition { .. } => (StatusCode::NOT_FOUND, "no_such_partition"),
            MessagesError::OutOfRange { .. } => (StatusCode::BAD_REQUEST, "out_of_range"),
            MessagesError::Nul { .. } => (StatusCode::BAD_REQUEST, "invalid_request"),
            MessagesError::PayloadTooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "payload_too_large"),
            MessagesError::TooManyGroups { .. } => (StatusCode::CONFLICT, "too_many_groups"),
            MessagesError::QueueFull { .. } => (StatusCode::TOO_MANY_REQUESTS, "queue_full"),
            MessagesError::NoKey { .. } | MessagesError::NoWriteKey { .. } => {
                (StatusCode::CONFLICT, "no_encryption_key")
            }
            MessagesError::Sealed => (StatusCode::INTERNAL_SERVER_ERROR, "payload_unreadable"),
            MessagesError::Overloaded(_) => return OVERLOADED,
            MessagesError::Closed => return CLOSING,
            MessagesError::Unavailable(why) => {
                debug!(why, "claim rounds fail");
                return DATABASE_AWAY;
            }
            other => {
                error!(error = %other, "a request failed");
                return DEFECT;
            }
        };
        Self { status, code, sentence: error.to_string().into() }
    }
}

fn of_database(error: &DatabaseError) -> Problem {
    match error {
        DatabaseError::Data { .. } => REFUSED_VALUES,
        DatabaseError::UnknownOutcome { .. } => UNKNOWN_OUTCOME,
        DatabaseError::Closed => CLOSING,
        // The database is well; this process has too many requests for it.
        DatabaseError::Busy { .. } => {
            debug!(%error, "all connections for callers are busy");
            OVERLOADED
        }
        // An operator has to repair this; until then nothing works, and clients may wait for it.
        // This arm stands before the transient errors: a standby may be promoted, or may be the
        // wrong address for ever, and then the log must say so.
        DatabaseError::ReadOnly { .. } | DatabaseError::Refused { .. } | DatabaseError::MissingDatabase { .. } => {
            error!(%error, "the database cannot be used");
            DATABASE_AWAY
        }
        error if error.is_transient() => {
            debug!(%error, "the database could not be asked");
            DATABASE_AWAY
        }
        error => {
            error!(%error, cause = ?std::error::Error::source(error).map(ToString::to_string), "a request failed");
            DEFECT
        }
    }
}
