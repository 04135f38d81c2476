//! Brings a schema to the version this program needs.
//!
//! Migrations are numbered, go forward only, and are applied one per transaction together with the
//! row that records them, under an advisory lock made from the schema's name: ten processes may
//! start at once, and one that dies leaves nothing half done. Then functions whose text changed are
//! replaced whole. Refuses a schema whose past differs from what this program carries, one from
//! before its first migration, one that is too new for it, and one where others use the names it
//! needs.
//!
//! Next: [`functions`], [`status`], [`script`] (the same as text), [`uninstall`].

use tracing::info;

use super::connection::Connection;
use super::error::DatabaseError;
use super::schema_name::SchemaName;
use super::statement::render;
use super::statements::{INSTALLED, LOCK, RECORD};
use super::transaction::Transaction;
use source::{BOOKKEEPING, Function, Migration, SchemaSource, lock_key};
use status::{Applied, SchemaStatus};

pub(crate) mod functions;
pub(crate) mod script;
pub(crate) mod source;
pub(crate) mod status;
pub(crate) mod uninstall;

/// Other migrators may be at work before us: wait for them longer than for a row.
const WAIT_FOR_OTHERS: &str = "set local lock_timeout = '5min'; set local statement_timeout = 0";

/// What a migration did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Migrated {
    /// The migrations that were applied, as `(version, name)`.
    pub migrations: Vec<(i32, &'static str)>,
    /// The functions that were created, replaced or dropped.
    pub functions: Vec<String>,
}

/// Carries out migrations of one schema on one connection.
pub(crate) struct Migrator<'c> {
    pub(crate) connection: &'c mut Connection,
    pub(crate) source: &'static SchemaSource,
}

impl Migrator<'_> {
    /// Apply what is missing.
    pub(crate) async fn up(mut self) -> Result<Migrated, DatabaseError> {
        let mut migrated = Migrated::default();
        while let Some(migration) = self.step().await? {
            info!(version = migration.version, name = migration.name, "applied a migration");
            migrated.migrations.push((migration.version, migration.name));
        }
        migrated.functions = functions::replace(&mut self).await?;
        Ok(migrated)
    }

    /// Where the schema stands. Takes no lock: reading the status waits for no migrator.
    pub(crate) async fn status(self) -> Result<SchemaStatus, DatabaseError> {
        let (source, schema) = (self.source, self.schema());
        let transaction = self.connection.transaction().await?;
        let applied = installed(&transaction, &schema).await?.applied;
        transaction.rollback().await?;
        Ok(SchemaStatus::new(&schema, source, applied))
    }

    /// Apply the next missing migration, if there is one. Reads the status under the lock: another
    /// process may have been faster.
    async fn step(&mut self) -> Result<Option<&'static Migration>, DatabaseError> {
        let (source, schema) = (self.source, self.schema());
        let transaction = self.begin().await?;
        let Installed { has_schema, has_tables, applied } = installed(&transaction, &schema).await?;
        let status = SchemaStatus::new(&schema, source, applied);
        status.not_retired()?;
        status.past_is_ours()?;
        status.not_too_new()?;
        let Some(migration) = status.next(source) else {
            transaction.rollback().await?;
            return Ok(None);
        };
        if status.found == 0 {
            let all: Vec<&Function> = source.functions.iter().collect();
            functions::none_taken(&transaction, &schema, &all).await?;
        }
        if !has_schema {
            transaction.batch("creating the schema", &render("create schema {schema}", &schema)).await?;
        }
        // Recorded as made by the first migration: they go with it when the schema is removed.
        let bookkeeping = (!has_tables).then_some(BOOKKEEPING);
        for sql in bookkeeping.into_iter().chain([migration.sql]) {
            let applied = transaction.batch("a migration", &render(sql, &schema)).await;
            applied.map_err(|error| name_taken(error, &schema))?;
        }
        let checksum = migration.checksum();
        transaction.execute(&RECORD, &[&migration.version, &migration.name, &checksum, &schema.as_str()]).await?;
        transaction.commit_known().await?;
        Ok(Some(migration))
    }

    /// A transaction that holds the migrators' lock, with the ordinary lock limit for what follows.
    pub(crate) async fn begin(&mut self) -> Result<Transaction<'_>, DatabaseError> {
        let schema = self.schema();
        let limit = self.connection.shared().settings.lock_timeout.as_millis();
        let transaction = self.connection.transaction().await?;
        transaction.batch("waiting for other migrators", WAIT_FOR_OTHERS).await?;
        transaction.query(&LOCK, &[&lock_key(&schema)]).await?;
        transaction.batch("a migration", &format!("set local lock_timeout = {limit}")).await?;
        Ok(transaction)
    }

    pub(crate) fn schema(&self) -> SchemaName {
        self.connection.shared().settings.schema.clone()
    }
}

/// The error for a name that a migration needs and that something else already has.
fn name_taken(error: DatabaseError, schema: &SchemaName) -> DatabaseError {
    match (&error, error.sqlstate()) {
        (DatabaseError::Other { cause, .. }, Some("42P07" | "42710")) => {
            DatabaseError::NameTaken { schema: schema.to_string(), what: cause.to_string() }
        }
        _ => error,
    }
}

struct Installed {
    has_schema: bool,
    has_tables: bool,
    applied: Vec<Applied>,
}

async fn installed(transaction: &Transaction<'_>, schema: &SchemaName) -> Result<Installed, DatabaseError> {
    let row = transaction.query_opt(&INSTALLED, &[&schema.as_str()]).await?;
    let has = |what| row.as_ref().is_some_and(|row| row.get::<_, bool>(what));
    let has_tables = has("has_tables");
    let applied = if has_tables { Applied::read(transaction).await? } else { Vec::new() };
    Ok(Installed { has_schema: has("has_schema"), has_tables, applied })
}
