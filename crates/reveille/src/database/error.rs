//! What can go wrong between us and PostgreSQL, each in one sentence that says what is true and
//! what to do.
//!
//! Promises that no sentence repeats its cause: the server's own words are in [`Cause`], reached
//! through `source()`, and appear once. Holds no secret: neither passwords nor parameters.
//!
//! Next: [`super::explain`], which makes these out of the driver's errors.

use std::time::Duration;

use super::cause::Cause;
use super::options::OptionsError;
use super::rights::remedy;

/// An error of the database layer. Its variant is its kind.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum DatabaseError {
    /// The options cannot be used; every fault is listed. Nothing was tried.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// No server answered at that address in time.
    #[error("could not reach PostgreSQL at {server}: check that it runs and that host and port are right")]
    Unreachable {
        /// Host and port, or the socket's directory.
        server: String,
        /// What the network said.
        #[source]
        cause: Cause,
    },
    /// The server is there and refused the login.
    #[error("PostgreSQL at {server} refused the login of user {user}: check the password and pg_hba.conf")]
    Refused {
        /// Host and port, or the socket's directory.
        server: String,
        /// The user that tried to log in.
        user: String,
        /// The server's words.
        #[source]
        cause: Cause,
    },
    /// The server is there, the database is not.
    #[error("there is no database {database} at {server}: create it or correct the name")]
    MissingDatabase {
        /// Host and port, or the socket's directory.
        server: String,
        /// The database that was asked for.
        database: String,
        /// The server's words.
        #[source]
        cause: Cause,
    },
    /// The server accepts no writes, so nothing was written: a standby, which may be promoted in a
    /// moment, or a server that was demoted.
    #[error("PostgreSQL at {server} accepts no writes, it is a standby or set to read-only: connect to the primary")]
    ReadOnly {
        /// Host and port, or the socket's directory.
        server: String,
        /// The server's words.
        #[source]
        cause: Cause,
    },
    /// The server is older than we support.
    #[error("PostgreSQL {version} at {server} is too old: Reveille needs version 15 to 18")]
    UnsupportedVersion {
        /// Host and port, or the socket's directory.
        server: String,
        /// The version the server reports.
        version: String,
    },
    /// No private connection could be agreed on.
    #[error("no TLS connection to {server}: {reason}")]
    Tls {
        /// Host and port, or the socket's directory.
        server: String,
        /// What is wrong with the certificate or the settings, and what to do.
        reason: String,
        /// The TLS library's words.
        #[source]
        cause: Option<Cause>,
    },
    /// The server has no connection, memory or disk left.
    #[error("PostgreSQL at {server} has no room left for us: raise its limits or lower the load")]
    Exhausted {
        /// Host and port, or the socket's directory.
        server: String,
        /// The server's words.
        #[source]
        cause: Cause,
    },
    /// Named statements went to a session that is not ours.
    #[error("a transaction pooler stands before PostgreSQL at {server}: choose the statement mode `pooled`")]
    Pooler {
        /// Host and port, or the socket's directory.
        server: String,
        /// The server's words.
        #[source]
        cause: Cause,
    },
    /// The schema was never migrated here.
    #[error("schema {schema} holds no Reveille tables: run `reveille migrate up`")]
    SchemaMissing {
        /// The schema's name.
        schema: String,
    },
    /// The schema is older than this program.
    #[error("schema {schema} is at version {found}, this program needs {needed}: run `reveille migrate up`")]
    SchemaTooOld {
        /// The schema's name.
        schema: String,
        /// The version in the database.
        found: i32,
        /// The version this program was built for.
        needed: i32,
    },
    /// The schema was made before the storage was reset; no migration leads from there.
    #[error(
        "schema {schema} is at version {found} and cannot be upgraded, only {oldest} and later can: \
         remove it with all its data by `reveille migrate uninstall --schema {schema}`, then start again"
    )]
    SchemaRetired {
        /// The schema's name.
        schema: String,
        /// The version in the database.
        found: i32,
        /// The oldest version that this program can upgrade.
        oldest: i32,
    },
    /// The schema is newer than this program tolerates.
    #[error(
        "schema {schema} is at version {found}, this program knows {known} and tolerates one more: upgrade the program"
    )]
    SchemaTooNew {
        /// The schema's name.
        schema: String,
        /// The version in the database.
        found: i32,
        /// The version this program was built for.
        known: i32,
    },
    /// A migration that was applied is not the one this program carries.
    #[error(
        "migration {version} was applied to schema {schema} with another text than this program carries: \
         run the program that applied it, or restore its file"
    )]
    MigrationChanged {
        /// The schema's name.
        schema: String,
        /// The number of the migration.
        version: i32,
    },
    /// A table or function that Reveille did not make has a name that it needs; it is left alone.
    #[error("schema {schema} has a name that Reveille needs for itself, {what}: choose another schema, or rename it")]
    NameTaken {
        /// The schema's name.
        schema: String,
        /// What is there, as `function name(arguments)` or in the server's words.
        what: String,
    },
    /// Objects that we did not make live in the schema or depend on it, so it is not removed.
    #[error("schema {schema} is also used by {}: move them away, or force the removal of ours", .objects.join(", "))]
    ForeignObjects {
        /// The schema's name.
        schema: String,
        /// What was found, as `table "name"`; at most a few.
        objects: Vec<String>,
    },
    /// The role lacks a right.
    #[error("user {user} lacks a right that {doing} needs: {}", remedy(user, cause.message()))]
    Permission {
        /// The user that we are.
        user: String,
        /// What was being done.
        doing: String,
        /// The server's words.
        #[source]
        cause: Cause,
    },
    /// A limit ended it; it may or may not have taken effect when no cause is given.
    #[error("{doing} took too long: check for locks and load, or raise the limit")]
    Timeout {
        /// What was being done.
        doing: String,
        /// The server's words, unless the server said nothing in time.
        #[source]
        cause: Option<Cause>,
    },
    /// The server asks to try again: a deadlock, a serialization failure, a changed plan. Nothing
    /// was written.
    #[error("{doing} collided with other work: try again")]
    Transient {
        /// What was being done.
        doing: String,
        /// The server's words.
        #[source]
        cause: Cause,
    },
    /// The connection ended while something was in flight; whether that took effect is not known.
    #[error("lost the connection to PostgreSQL at {server} during {doing}: ask for another one and try again")]
    Lost {
        /// Host and port, or the socket's directory.
        server: String,
        /// What was being done.
        doing: String,
        /// What the network or the server said.
        #[source]
        cause: Cause,
    },
    /// The commit was not tried: a statement of the transaction failed, or its caller left before
    /// its answer came.
    #[error("a statement of the transaction failed or was given up, so nothing was written: check that statement")]
    RolledBack,
    /// The connection ended around the commit, and the transaction is known not to have happened.
    #[error("the connection to PostgreSQL at {server} ended before the commit, nothing was written: try again")]
    NotCommitted {
        /// Host and port, or the socket's directory.
        server: String,
    },
    /// The connection ended around the commit, and it could not be learned whether it happened.
    #[error("the connection to PostgreSQL at {server} ended during a commit: check whether it took effect")]
    UnknownOutcome {
        /// Host and port, or the socket's directory.
        server: String,
    },
    /// The values are refused: without the bad item the rest succeeds.
    #[error("PostgreSQL refused the values of {doing}: correct them")]
    Data {
        /// What was being done.
        doing: String,
        /// The server's words.
        #[source]
        cause: Cause,
    },
    /// All connections for callers stayed in use.
    #[error("all {size} connections for callers stayed busy for {waited:?}: raise the pool size or lower the load")]
    Busy {
        /// How many there are.
        size: usize,
        /// How long was waited.
        waited: Duration,
    },
    /// [`Database::close`](super::Database::close) was called.
    #[error("the database handle is closed")]
    Closed,
    /// A part of the schema that should be there is missing, or a statement is wrong.
    #[error("PostgreSQL rejected {doing}: this is a defect, or the schema was changed by hand")]
    Other {
        /// What was being done.
        doing: String,
        /// The server's words.
        #[source]
        cause: Cause,
    },
}

impl DatabaseError {
    /// Whether the same work may succeed in a moment, if it is safe to do twice.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. }
            | Self::ReadOnly { .. }
            | Self::Exhausted { .. }
            | Self::Transient { .. }
            | Self::Timeout { .. }
            | Self::Lost { .. }
            | Self::NotCommitted { .. }
            | Self::Busy { .. } => true,
            Self::Options(_)
            | Self::Refused { .. }
            | Self::MissingDatabase { .. }
            | Self::UnsupportedVersion { .. }
            | Self::Tls { .. }
            | Self::Pooler { .. }
            | Self::SchemaMissing { .. }
            | Self::SchemaTooOld { .. }
            | Self::SchemaRetired { .. }
            | Self::SchemaTooNew { .. }
            | Self::MigrationChanged { .. }
            | Self::NameTaken { .. }
            | Self::ForeignObjects { .. }
            | Self::Permission { .. }
            | Self::RolledBack
            | Self::UnknownOutcome { .. }
            | Self::Data { .. }
            | Self::Closed
            | Self::Other { .. } => false,
        }
    }

    /// The server's SQLSTATE, when a statement or login was refused by the server itself.
    pub fn sqlstate(&self) -> Option<&str> {
        match self {
            Self::Unreachable { cause, .. }
            | Self::Refused { cause, .. }
            | Self::MissingDatabase { cause, .. }
            | Self::ReadOnly { cause, .. }
            | Self::Exhausted { cause, .. }
            | Self::Pooler { cause, .. }
            | Self::Permission { cause, .. }
            | Self::Transient { cause, .. }
            | Self::Lost { cause, .. }
            | Self::Data { cause, .. }
            | Self::Other { cause, .. }
            | Self::Timeout { cause: Some(cause), .. } => cause.sqlstate(),
            _ => None,
        }
    }
}
