//! The migrations and functions a program carries, as values.
//!
//! Another crate with tables of its own brings its own [`SchemaSource`]: see
//! [`Database::migrate_from`](crate::database::Database::migrate_from).

use sha2::{Digest, Sha256};

use crate::database::schema_name::SchemaName;

/// Everything that makes a schema.
#[derive(Debug)]
pub struct SchemaSource {
    /// In order, numbered without gaps. A schema that holds an older one than the first of these
    /// cannot be upgraded.
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

/// One function for other languages; its file creates it under its own name, perhaps with several
/// signatures.
#[derive(Debug)]
pub struct Function {
    /// Its name, without the schema.
    pub name: &'static str,
    /// The text that creates it, with `{schema}` for the schema's name.
    pub sql: &'static str,
}

/// Makes the tables in which migrations and functions are recorded, together with a schema's first
/// migration.
pub(crate) const BOOKKEEPING: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/sql/database/migrate/bookkeeping.sql"));

impl SchemaSource {
    /// The version a schema has when all is applied.
    pub(crate) fn version(&self) -> i32 {
        self.migrations.last().map_or(0, |last| last.version)
    }

    /// The oldest version from which a schema can be upgraded.
    pub(crate) fn oldest(&self) -> i32 {
        self.migrations.first().map_or(0, |first| first.version)
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

    pub(crate) fn texts(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let migrations = self.migrations.iter().map(|migration| (migration.name, migration.sql));
        let bookkeeping = std::iter::once(("bookkeeping", BOOKKEEPING));
        bookkeeping.chain(migrations).chain(self.functions.iter().map(|function| (function.name, function.sql)))
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
    fn different_schemas_have_different_locks() {
        let (one, other) = ("one".parse().unwrap(), "other".parse().unwrap());

        assert_ne!(lock_key(&one), lock_key(&other));
    }
}
