//! Turns the driver's errors into ours.
//!
//! Has two functions, because the same SQLSTATE means different things: [`Place::login`] while a
//! connection is opened, [`Place::statement`] once it works. Decides nothing about retries.

use std::error::Error;
use std::io;

use super::cause::Cause;
use super::error::DatabaseError;
use super::sqlstate::{SqlClass, classify};
use super::tls;

/// What tokio-postgres says when `target_session_attrs` is not met; it has no code of its own.
const NO_WRITES: &str = "database does not allow writes";
/// How `PgBouncer` refuses session settings at login.
const NO_SETTINGS: &str = "unsupported startup parameter";

/// Where we are connected, for the sentences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) server: String,
    pub(crate) user: String,
    pub(crate) database: String,
}

impl Place {
    /// Why a connection could not be opened.
    pub(crate) fn login(&self, error: &tokio_postgres::Error) -> DatabaseError {
        let server = self.server.clone();
        let cause = Cause::of(error);
        if let Some(reason) = tls::explain(error, &self.server) {
            return DatabaseError::Tls { server, reason, cause: Some(cause) };
        }
        if accepts_no_writes(error) {
            return DatabaseError::ReadOnly { server, cause };
        }
        let Some(code) = cause.sqlstate() else {
            return self.silent_login(error, cause);
        };
        match classify(code) {
            SqlClass::Refused => DatabaseError::Refused { server, user: self.user.clone(), cause },
            SqlClass::MissingDatabase => {
                DatabaseError::MissingDatabase { server, database: self.database.clone(), cause }
            }
            SqlClass::Exhausted => DatabaseError::Exhausted { server, cause },
            SqlClass::Shutdown if cause.to_string().contains(NO_SETTINGS) => DatabaseError::Pooler { server, cause },
            SqlClass::Shutdown => DatabaseError::Unreachable { server, cause },
            _ => self.statement_cause("the login".to_owned(), cause),
        }
    }

    /// A login that failed without a word from the server: the network's fault, or ours (as a
    /// missing password).
    fn silent_login(&self, error: &tokio_postgres::Error, cause: Cause) -> DatabaseError {
        let server = self.server.clone();
        let network = error.source().and_then(|source| source.downcast_ref::<io::Error>()).is_some();
        if network || error.is_closed() {
            DatabaseError::Unreachable { server, cause }
        } else {
            DatabaseError::Refused { server, user: self.user.clone(), cause }
        }
    }

    /// Why a statement failed on a connection that worked.
    pub(crate) fn statement(&self, doing: impl Into<String>, error: &tokio_postgres::Error) -> DatabaseError {
        self.statement_cause(doing.into(), Cause::of(error))
    }

    fn statement_cause(&self, doing: String, cause: Cause) -> DatabaseError {
        let server = self.server.clone();
        let Some(code) = cause.sqlstate() else {
            return if cause.ended_the_session() {
                DatabaseError::Lost { server, doing, cause }
            } else {
                DatabaseError::Other { doing, cause }
            };
        };
        match classify(code) {
            _ if cause.is_stale_plan() => DatabaseError::Transient { doing, cause },
            SqlClass::Transient => DatabaseError::Transient { doing, cause },
            SqlClass::Shutdown => DatabaseError::Lost { server, doing, cause },
            SqlClass::Exhausted => DatabaseError::Exhausted { server, cause },
            SqlClass::Timeout => DatabaseError::Timeout { doing, cause: Some(cause) },
            SqlClass::Data => DatabaseError::Data { doing, cause },
            SqlClass::Permission => DatabaseError::Permission { user: self.user.clone(), doing, cause },
            SqlClass::Refused => DatabaseError::Refused { server, user: self.user.clone(), cause },
            SqlClass::MissingDatabase => {
                DatabaseError::MissingDatabase { server, database: self.database.clone(), cause }
            }
            SqlClass::ReadOnly => DatabaseError::ReadOnly { server, cause },
            SqlClass::Pooler => DatabaseError::Pooler { server, cause },
            SqlClass::MissingObject | SqlClass::Permanent => DatabaseError::Other { doing, cause },
        }
    }
}

fn accepts_no_writes(error: &tokio_postgres::Error) -> bool {
    let source = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    source.is_some_and(|source| source.to_string() == NO_WRITES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> Place {
        Place { server: "db:5432".into(), user: "app".into(), database: "shop".into() }
    }

    #[test]
    fn a_sentence_never_repeats_its_cause() {
        let error = place().statement_cause("a push".into(), Cause::lost("connection closed"));

        assert_eq!(
            error.to_string(),
            "lost the connection to PostgreSQL at db:5432 during a push: ask for another one and try again"
        );
        assert_eq!(error.source().unwrap().to_string(), "connection closed");
        assert!(error.is_transient());
    }
}
