//! Where a schema stands, and whether this program can work with it.
//!
//! A program runs with the schema it was built for and with the next one, so that an upgrade can
//! roll: first the schema, then the programs one by one. The judgement is pure; [`Applied::read`]
//! runs the only statement.

use std::time::SystemTime;

use super::source::{Migration, SchemaSource};
use crate::database::error::DatabaseError;
use crate::database::schema_name::SchemaName;
use crate::database::statements::APPLIED;
use crate::database::transaction::Transaction;

/// How many versions newer than itself a program tolerates.
const TOLERATED: i32 = 1;

/// A migration as the database records it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// Its number.
    pub version: i32,
    /// Its name when it was applied.
    pub name: String,
    /// When it was applied, by the database's clock.
    pub at: SystemTime,
    checksum: String,
}

impl Applied {
    pub(crate) async fn read(transaction: &Transaction<'_>) -> Result<Vec<Self>, DatabaseError> {
        let rows = transaction.query(&APPLIED, &[]).await?;
        let read = rows.iter().map(|row| Self {
            version: row.get("version"),
            name: row.get("name"),
            at: row.get("applied_at"),
            checksum: row.get("checksum"),
        });
        Ok(read.collect())
    }
}

/// What was applied to a schema, and what is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaStatus {
    /// The schema's name.
    pub schema: String,
    /// The version this program was built for.
    pub known: i32,
    /// The version in the database; 0 when nothing was applied.
    pub found: i32,
    /// The oldest version that this program can upgrade.
    pub oldest: i32,
    /// What was applied, oldest first.
    pub applied: Vec<Applied>,
    /// What this program would apply, as `(version, name)`.
    pub pending: Vec<(i32, &'static str)>,
    /// Applied migrations whose text is not the one this program carries.
    pub changed: Vec<i32>,
}

impl SchemaStatus {
    pub(crate) fn new(schema: &SchemaName, source: &SchemaSource, applied: Vec<Applied>) -> Self {
        let found = applied.last().map_or(0, |last| last.version);
        let is_changed = |migration: &&Migration| {
            let then = applied.iter().find(|then| then.version == migration.version);
            then.is_some_and(|then| then.checksum != migration.checksum())
        };
        let is_retired = applied.iter().any(|then| then.version < source.oldest());
        let is_missing =
            |migration: &&Migration| !is_retired && !applied.iter().any(|then| then.version == migration.version);
        let pending = source.migrations.iter().filter(is_missing).map(|missing| (missing.version, missing.name));
        Self {
            schema: schema.to_string(),
            known: source.version(),
            found,
            oldest: source.oldest(),
            pending: pending.collect(),
            changed: source.migrations.iter().filter(is_changed).map(|changed| changed.version).collect(),
            applied,
        }
    }

    /// Whether a program may work on this schema; the error says why not.
    pub fn usable(&self) -> Result<(), DatabaseError> {
        let schema = self.schema.clone();
        if self.found == 0 {
            return Err(DatabaseError::SchemaMissing { schema });
        }
        self.not_retired()?;
        if self.found < self.known {
            return Err(DatabaseError::SchemaTooOld { schema, found: self.found, needed: self.known });
        }
        self.not_too_new()
    }

    /// A schema from before the storage was reset is left as it is.
    pub(crate) fn not_retired(&self) -> Result<(), DatabaseError> {
        if self.applied.iter().any(|then| then.version < self.oldest) {
            let (schema, found, oldest) = (self.schema.clone(), self.found, self.oldest);
            return Err(DatabaseError::SchemaRetired { schema, found, oldest });
        }
        Ok(())
    }

    pub(crate) fn not_too_new(&self) -> Result<(), DatabaseError> {
        if self.found > self.known + TOLERATED {
            let (schema, found, known) = (self.schema.clone(), self.found, self.known);
            return Err(DatabaseError::SchemaTooNew { schema, found, known });
        }
        Ok(())
    }

    /// Migrations are never edited once they were applied anywhere.
    pub(crate) fn past_is_ours(&self) -> Result<(), DatabaseError> {
        match self.changed.first() {
            Some(&version) => Err(DatabaseError::MigrationChanged { schema: self.schema.clone(), version }),
            None => Ok(()),
        }
    }

    /// The migration to apply next.
    pub(crate) fn next(&self, source: &'static SchemaSource) -> Option<&'static Migration> {
        let (version, _) = self.pending.first()?;
        source.migrations.iter().find(|migration| migration.version == *version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static SOURCE: SchemaSource = SchemaSource {
        migrations: &[Migration { version: 1, name: "one", sql: "a" }, Migration { version: 2, name: "two", sql: "b" }],
        functions: &[],
        release: "1.0.0",
    };

    static LATER: SchemaSource = SchemaSource {
        migrations: &[Migration { version: 3, name: "all", sql: "c" }],
        functions: &[],
        release: "1.0.0",
    };

    fn status(found: i32) -> SchemaStatus {
        let applied = (1..=found).map(|version| {
            let known = SOURCE.migrations.iter().find(|migration| migration.version == version);
            let checksum = known.map(Migration::checksum).unwrap_or_default();
            Applied { version, name: "x".into(), at: SystemTime::UNIX_EPOCH, checksum }
        });
        SchemaStatus::new(&SchemaName::default(), &SOURCE, applied.collect())
    }

    #[test]
    fn a_program_runs_on_its_own_schema_and_on_the_next() {
        assert!(matches!(status(0).usable(), Err(DatabaseError::SchemaMissing { .. })));
        assert!(matches!(status(1).usable(), Err(DatabaseError::SchemaTooOld { found: 1, needed: 2, .. })));
        assert!(status(2).usable().is_ok());
        assert!(status(3).usable().is_ok());
        assert!(matches!(status(4).usable(), Err(DatabaseError::SchemaTooNew { found: 4, known: 2, .. })));
    }

    #[test]
    fn what_is_missing_comes_next_in_order() {
        assert_eq!(status(0).pending, [(1, "one"), (2, "two")]);
        assert_eq!(status(1).next(&SOURCE).unwrap().name, "two");
        assert!(status(3).next(&SOURCE).is_none());
    }

    #[test]
    fn a_schema_older_than_the_first_migration_is_refused_and_nothing_is_applied_to_it() {
        let status = SchemaStatus::new(&SchemaName::default(), &LATER, status(2).applied);

        assert!(matches!(status.usable(), Err(DatabaseError::SchemaRetired { found: 2, oldest: 3, .. })));
        assert_eq!((status.pending.len(), status.next(&LATER).is_none()), (0, true));
        let empty = SchemaStatus::new(&SchemaName::default(), &LATER, Vec::new());
        assert_eq!(empty.pending, [(3, "all")]);
        assert!(matches!(empty.usable(), Err(DatabaseError::SchemaMissing { .. })));
    }

    #[test]
    fn a_migration_edited_after_the_fact_is_found() {
        let mut applied = status(2).applied;
        applied[0].checksum = "another".into();

        let status = SchemaStatus::new(&SchemaName::default(), &SOURCE, applied);

        assert!(matches!(status.past_is_ours(), Err(DatabaseError::MigrationChanged { version: 1, .. })));
    }
}
