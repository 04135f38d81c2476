//! What this crate keeps in a database: its migrations, its functions and its statements.
//!
//! Owns the list of all three, and what is done with the schema as a whole. [`crate::database`]
//! knows how migrations and statements are run, not what is in them.
//!
//! Next: `sql/schema.sql`, the tables as they are when all migrations are applied.

use crate::database::connector::Purpose;
use crate::database::migrate::Migrator;
use crate::database::migrate::script::script;
use crate::database::{
    Database, DatabaseError, Function, Migrated, Migration, SchemaName, SchemaSource, SchemaStatus, Statement,
    Uninstall, Uninstalled,
};
use crate::{batcher, database, doctor, jobs, messages, node};

macro_rules! migrations {
    ($($version:literal $name:literal $file:literal),* $(,)?) => {
        &[$(Migration {
            version: $version,
            name: $name,
            sql: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/sql/migrations/", $file)),
        }),*]
    };
}

macro_rules! functions {
    ($($name:literal $file:literal),* $(,)?) => {
        &[$(Function {
            name: $name,
            sql: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/sql/functions/", $file)),
        }),*]
    };
}

/// This crate's own.
pub(crate) static OURS: SchemaSource = SchemaSource {
    migrations: migrations![
        8 "engine" "0008_engine.sql", 9 "messages" "0009_messages.sql", 10 "jobs" "0010_jobs.sql",
    ],
    functions: functions![
        "version" "version.sql",
        "refuse_duplicates" "refuse_duplicates.sql",
        "ensure_all" "ensure_all.sql",
        "any_key_seen" "any_key_seen.sql",
        "ensure" "ensure.sql",
        "dedup_key" "dedup_key.sql",
        "dedup_reach" "dedup_reach.sql",
        "growing_seen" "growing_seen.sql",
        "note_keys" "note_keys.sql",
        "note_if_new" "note_if_new.sql",
        "message_id" "message_id.sql",
        "move_partitions" "move_partitions.sql",
        "move_outbox" "move_outbox.sql",
        "hint_channel" "hint_channel.sql",
        "push_items" "push_items.sql",
        "push" "push.sql",
        "push_many" "push_many.sql",
        "remove_leftovers" "remove_leftovers.sql",
        "cursor_of" "cursor_of.sql",
        "partition_row_of" "partition_row_of.sql",
        "segment_parts" "segment_parts.sql",
        "lease_end" "lease_end.sql",
        "mark_ready" "mark_ready.sql",
        "make_cursors" "make_cursors.sql",
        "finish_group" "finish_group.sql",
        "register" "register.sql",
        "bury" "bury.sql",
        "settle" "settle.sql",
        "seq_at" "seq_at.sql",
        "seek" "seek.sql",
        "redrive" "redrive.sql",
        "dead_letters" "dead_letters.sql",
        "described" "described.sql",
        "retry_delay" "retry_delay.sql",
        "check_backoff" "check_backoff.sql",
        "job_tags" "job_tags.sql",
        "job_unique_key" "job_unique_key.sql",
        "enqueue_conflict" "enqueue_conflict.sql",
        "announce_jobs" "announce_jobs.sql",
        "check_jobs" "check_jobs.sql",
        "enqueue_items" "enqueue_items.sql",
        "enqueue" "enqueue.sql",
        "enqueue_many" "enqueue_many.sql",
        "settle_jobs" "settle_jobs.sql",
        "settle_job" "settle_job.sql",
        "complete" "complete_job.sql",
        "fail" "fail.sql",
        "snooze" "snooze.sql",
    ],
    release: env!("CARGO_PKG_VERSION"),
};

/// Every statement of this crate.
pub fn statements() -> impl Iterator<Item = &'static Statement> {
    let engine = database::statements::ALL.iter().chain(batcher::STATEMENTS).chain(node::STATEMENTS);
    engine.chain(doctor::STATEMENTS).chain(messages::STATEMENTS).chain(jobs::STATEMENTS).copied()
}

/// A hash over every migration and function this program carries: the same fingerprint makes the
/// same schema.
pub fn schema_fingerprint() -> String {
    OURS.fingerprint()
}

/// The migrations after version `from` (0 for all) and all functions, as a script for psql.
pub fn migration_script(schema: &SchemaName, from: i32) -> String {
    script(&OURS, schema, from)
}

impl Database {
    /// Bring the schema to the version this program needs. Safe to call from many processes at
    /// once.
    pub async fn migrate(&self) -> Result<Migrated, DatabaseError> {
        self.migrator(async |migrator| migrator.up().await).await
    }

    /// Where the schema stands.
    pub async fn schema_status(&self) -> Result<SchemaStatus, DatabaseError> {
        let mut connection = self.connection(Purpose::Migrate).await?;
        Migrator { connection: &mut connection, source: &OURS }.status().await
    }

    pub(crate) async fn refuse_retired_schema(&self) -> Result<(), DatabaseError> {
        let mut connection = self.acquire().await?;
        match (Migrator { connection: &mut connection, source: &OURS }).status().await {
            Ok(status) => status.not_retired(),
            // A user without rights on the schema gets the error of the statement that needs them.
            Err(DatabaseError::Permission { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Whether this program can work on the schema as it is; the error says why not.
    pub async fn check_schema(&self) -> Result<(), DatabaseError> {
        self.schema_status().await?.usable()
    }

    /// Remove everything we made.
    pub async fn uninstall(&self, how: Uninstall) -> Result<Uninstalled, DatabaseError> {
        self.migrator(async |migrator| migrator.uninstall(how).await).await
    }

    /// On a connection of its own: index builds may take long, and callers need the pool meanwhile.
    async fn migrator<T>(
        &self,
        work: impl AsyncFnOnce(Migrator<'_>) -> Result<T, DatabaseError>,
    ) -> Result<T, DatabaseError> {
        let mut connection = self.connection(Purpose::Migrate).await?.patient();
        work(Migrator { connection: &mut connection, source: &OURS }).await
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn migrations_are_numbered_without_gaps() {
        let versions: Vec<i32> = OURS.migrations.iter().map(|migration| migration.version).collect();

        assert_eq!(versions, (OURS.oldest()..=OURS.version()).collect::<Vec<_>>());
    }

    #[test]
    fn every_text_begins_with_its_contract_and_no_comment_names_the_schema() {
        for (name, sql) in OURS.texts() {
            assert!(sql.starts_with("-- ") && sql.contains("\n-- locks:"), "{name}");
            let comments = sql.lines().filter_map(|line| line.split_once("--"));
            assert!(comments.into_iter().all(|(_, comment)| !comment.contains("{schema}")), "{name}");
        }
    }

    #[test]
    fn functions_are_not_planned_on_every_call_and_quote_their_bodies_as_ours() {
        for function in OURS.functions {
            // PostgreSQL makes such a function part of the statement that calls it.
            let inlined = function.sql.contains("\nreturns table (") && function.sql.contains("\nstable\n");
            let planned = function.sql.contains("language sql") && !inlined;
            assert!(!planned, "{} would be planned on every call", function.name);
            assert!(!function.sql.contains("$$"), "{} must quote its body with $reveille$", function.name);
            assert!(function.sql.contains("is 'Reveille: "), "{} must say in a comment whose it is", function.name);
            assert!(function.sql.contains(&format!("create or replace function {{schema}}.{}(", function.name)));
        }
    }

    #[test]
    fn every_file_begins_with_its_contract() {
        for statement in statements() {
            assert!(statement.sql.starts_with("-- "), "{} does not say what it does", statement.name);
            assert!(statement.sql.contains("\n-- locks:"), "{} does not say what it locks", statement.name);
        }
    }

    #[test]
    fn no_comment_names_the_schema() {
        // A name with a line break would end the comment.
        for statement in statements() {
            let comments = statement.sql.lines().filter_map(|line| line.split_once("--")).map(|(_, comment)| comment);
            assert!(comments.into_iter().all(|comment| !comment.contains("{schema}")), "{}", statement.name);
        }
    }

    #[test]
    fn names_are_unique_and_every_parameter_has_a_type() {
        let mut names = HashSet::new();
        for statement in statements() {
            assert!(names.insert(statement.name), "{} is declared twice", statement.name);
            let highest = (1..40).rev().find(|n| statement.sql.contains(&format!("${n}"))).unwrap_or(0);
            assert_eq!(highest, statement.types.len(), "{}", statement.name);
        }
    }
}
