//! Why something failed, in the words of the server, the network or the TLS library.
//!
//! Keeps the driver's types out of our errors and its fillers ("db error") out of our sentences.
//! Holds no parameter values: a server's DETAIL may quote a row, so it is left out when the refusal
//! is about data.

use std::error::Error;
use std::fmt;
use std::io;

use tokio_postgres::error::Severity;

use super::sqlstate::{SqlClass, classify};

/// Why something failed, in the words of the server, the network or the TLS library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    message: String,
    sqlstate: Option<String>,
    end: End,
    stale_plan: bool,
}

/// What an error says about the session it happened in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The session goes on.
    Alive,
    /// The server ended it and said so.
    Fatal,
    /// The connection broke without a word from the server.
    Lost,
}

impl Cause {
    /// The SQLSTATE, if the server (or a pooler before it) gave one.
    pub fn sqlstate(&self) -> Option<&str> {
        self.sqlstate.as_deref()
    }

    /// The message, without the SQLSTATE.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Whether the session is over: what was in flight may or may not have taken effect.
    pub(crate) fn ended_the_session(&self) -> bool {
        self.end != End::Alive
    }

    /// Whether a prepared statement must be prepared again, because a migration changed what it
    /// returns. Its SQLSTATE is that of any unsupported feature, and its text is translated; the
    /// name of the routine that reports it is not.
    pub(crate) fn is_stale_plan(&self) -> bool {
        self.stale_plan
    }

    /// The connection broke, in these words.
    pub(crate) fn lost(message: impl Into<String>) -> Self {
        Self { message: message.into(), sqlstate: None, end: End::Lost, stale_plan: false }
    }

    pub(crate) fn of(error: &tokio_postgres::Error) -> Self {
        let Some(refusal) = error.as_db_error() else {
            let end = if broke(error) { End::Lost } else { End::Alive };
            return Self { message: innermost(error), sqlstate: None, end, stale_plan: false };
        };
        let code = refusal.code().code();
        let mut message = refusal.message().to_owned();
        if let Some(detail) = refusal.detail().filter(|_| classify(code) != SqlClass::Data) {
            message = format!("{message} ({detail})");
        }
        let fatal = matches!(refusal.parsed_severity(), Some(Severity::Fatal | Severity::Panic));
        let end = if fatal { End::Fatal } else { End::Alive };
        let stale_plan = refusal.routine() == Some("RevalidateCachedQuery");
        Self { message, sqlstate: Some(code.to_owned()), end, stale_plan }
    }
}

/// Whether the link is at fault. A value that cannot be encoded is an error without SQLSTATE too,
/// but the link lives on.
fn broke(error: &tokio_postgres::Error) -> bool {
    let io = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    error.is_closed() || io.is_some_and(|io| io.kind() != io::ErrorKind::InvalidInput)
}

/// The last error of the chain says what happened; those before it only say where.
fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.sqlstate {
            Some(code) => write!(f, " [SQLSTATE {code}]"),
            None => Ok(()),
        }
    }
}

impl Error for Cause {}
