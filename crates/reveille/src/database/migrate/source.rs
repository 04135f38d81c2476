//! The migrations and functions a program carries, as values.
//!
//! Another crate with tables of its own brings its own [`SchemaSource`]: see
//! [`Database::migrate_from`](crate::database::Database::migrate_from).

use sha2::{Digest, Sha256};

use crate::database::schema_name::SchemaName;

/// Everything that makes a schema.
#[derive(Debug)]
pub struct SchemaSource {
    /// In order, numbered from 1 without gaps. The first makes the tables in which they are recorded, as this crate's own does.
    pub migrations: &'static [Migration],
    /// Functions for other languages.
    pub functions: &'static [Function],
    /// Which release carries these functions: an older one does not put its own back.
    pub release: &'static str,
}

/// One step of the schema's life.
#[derive(Debug)]
pub struct Migration {
    /// Its number.
    pub version: i32,
    /// What it is called.
    pub name: &'static str,
    /// What it does, with `{schema}` for the schema's name.
    pub sql: &'static str,
}

/// One function for other languages; its file creates it under its own name, perhaps with several signatures.
#[derive(Debug)]
pub struct Function {
    /// Its name, without the schema.
    pub name: &'static str,
    /// The text that creates it, with `{schema}` for the schema's name.
    pub sql: &'static str,
}

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
        1 "ground" "0001_ground.sql", 2 "node" "0002_node.sql", 3 "messages" "0003_messages.sql", 4 "jobs" "0004_jobs.sql",
        5 "dedup_runs" "0005_dedup_runs.sql", 6 "places" "0006_places.sql",
        7 "dedup_spans" "0007_dedup_spans.sql",
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
        "key_high_of" "key_high_of.sql",
        "note_keys" "note_keys.sql",
        "note_if_new" "note_if_new.sql",
        "dedup_run_of" "dedup_run_of.sql",
        "remember" "remember.sql",
        "message_id" "message_id.sql",
        "move_partitions" "move_partitions.sql",
        "move_outbox" "move_outbox.sql",
        "hint_channel" "hint_channel.sql",
        "push_items" "push_items.sql",
        "push" "push.sql",
        "push_many" "push_many.sql",
        "remove_leftovers" "remove_leftovers.sql",
        "cursor_of" "cursor_of.sql",
        "head_of" "head_of.sql",
        "spread" "spread.sql",
        "make_cursors" "make_cursors.sql",
        "finish_group" "finish_group.sql",
        "register" "register.sql",
        "bury" "bury.sql",
        "settle" "settle.sql",
        "seq_at" "seq_at.sql",
        "seek" "seek.sql",
        "redrive" "redrive.sql",
        "retry_delay" "retry_delay.sql",
        "check_backoff" "check_backoff.sql",
        "job_tags" "job_tags.sql",
        "job_unique_key" "job_unique_key.sql",
        "enqueue_conflict" "enqueue_conflict.sql",
        "announce_jobs" "announce_jobs.sql",
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

impl SchemaSource {
    /// The version a schema has when all is applied.
    pub(crate) fn version(&self) -> i32 {
        self.migrations.last().map_or(0, |last| last.version)
    }

    /// A hash over every text: two programs with the same fingerprint make the same schema.
    pub(crate) fn fingerprint(&self) -> String {
        let mut texts = Sha256::new();
        for (name, sql) in self.texts() {
            texts.update(name.len().to_le_bytes());
            texts.update(name);
            texts.update(sql.len().to_le_bytes());
            texts.update(sql);
        }
        hex(&texts.finalize())
    }

    fn texts(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let migrations = self.migrations.iter().map(|migration| (migration.name, migration.sql));
        migrations.chain(self.functions.iter().map(|function| (function.name, function.sql)))
    }
}

impl Migration {
    pub(crate) fn checksum(&self) -> String {
        hex(&Sha256::digest(self.sql))
    }
}

impl Function {
    pub(crate) fn hash(&self) -> String {
        hex(&Sha256::digest(self.sql))
    }
}

/// The advisory lock of a schema's migrators. PostgreSQL keeps it apart for each database.
pub(crate) fn lock_key(schema: &SchemaName) -> i64 {
    let digest = Sha256::digest(format!("reveille migrate {schema}"));
    digest.iter().take(8).fold(0, |key, byte| key << 8 | i64::from(*byte))
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn migrations_are_numbered_from_one_without_gaps() {
        let versions: Vec<i32> = OURS.migrations.iter().map(|migration| migration.version).collect();

        assert_eq!(versions, (1..=OURS.version()).collect::<Vec<_>>());
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
            // Such a one becomes part of the statement that calls it.
            let inlined = function.sql.contains("\nreturns table (") && function.sql.contains("\nstable\n");
            let planned = function.sql.contains("language sql") && !inlined;
            assert!(!planned, "{} would be planned on every call", function.name);
            assert!(!function.sql.contains("$$"), "{} must quote its body with $reveille$", function.name);
            assert!(function.sql.contains("is 'Reveille: "), "{} must say in a comment whose it is", function.name);
            assert!(function.sql.contains(&format!("create or replace function {{schema}}.{}(", function.name)));
        }
    }

    #[test]
    fn different_schemas_have_different_locks() {
        let (one, other) = ("one".parse().unwrap(), "other".parse().unwrap());

        assert_ne!(lock_key(&one), lock_key(&other));
    }
}
