//! Keeps the functions for other languages as this program carries them.
//!
//! A function is replaced whole when the hash of its text differs from the recorded one; grants on
//! it survive. Old signatures under its name are dropped, and so are functions that are no longer
//! carried. An older release leaves alone what a newer one wrote, and a program on a schema newer
//! than its own touches nothing. A function of others under a name we need is never replaced or
//! dropped: if it was there first, the migration is refused. Ours are known by their comment.

use std::collections::HashMap;

use super::Migrator;
use super::source::{Function, SchemaSource};
use super::status::{Applied, SchemaStatus};
use crate::database::error::DatabaseError;
use crate::database::schema_name::SchemaName;
use crate::database::statement::render;
use crate::database::statements::{FORGET_FUNCTION, FUNCTIONS, RECORD_FUNCTION, SIGNATURES};
use crate::database::transaction::Transaction;

/// What the database records about a function.
struct Recorded {
    hash: String,
    release: String,
}

/// Replace what changed; returns the names of what was touched.
pub(super) async fn replace(migrator: &mut Migrator<'_>) -> Result<Vec<String>, DatabaseError> {
    let (source, schema) = (migrator.source, migrator.schema());
    let transaction = migrator.begin().await?;
    let status = SchemaStatus::new(&schema, source, Applied::read(&transaction).await?);
    let recorded = recorded(&transaction).await?;
    if status.found != source.version() || recorded.values().any(|then| is_newer(&then.release, source.release)) {
        transaction.rollback().await?;
        return Ok(Vec::new());
    }
    let mut touched = Vec::new();
    let unrecorded = source.functions.iter().filter(|function| !recorded.contains_key(function.name));
    none_taken(&transaction, &schema, &unrecorded.collect::<Vec<_>>()).await?;
    for function in changed(source, &recorded) {
        create(&transaction, &schema, function, source.release).await?;
        touched.push(function.name.to_owned());
    }
    for name in recorded.keys().filter(|name| !source.functions.iter().any(|function| function.name == *name)) {
        drop_signatures(&transaction, &schema, name, Which::All).await?;
        transaction.execute(&FORGET_FUNCTION, &[name]).await?;
        touched.push(name.clone());
    }
    touched.sort();
    transaction.commit_known().await?;
    Ok(touched)
}

/// Refuses if a function that we have not recorded as ours is there under one of these names.
pub(super) async fn none_taken(
    transaction: &Transaction<'_>,
    schema: &SchemaName,
    unrecorded: &[&Function],
) -> Result<(), DatabaseError> {
    let mut taken: Vec<String> = Vec::new();
    for function in unrecorded {
        let rows = transaction.query(&SIGNATURES, &[&schema.as_str(), &function.name]).await?;
        taken.extend(rows.iter().map(|row| format!("function {}", row.get::<_, &str>("identity"))));
    }
    if taken.is_empty() {
        return Ok(());
    }
    Err(DatabaseError::NameTaken { schema: schema.to_string(), what: taken.join(", ") })
}

async fn recorded(transaction: &Transaction<'_>) -> Result<HashMap<String, Recorded>, DatabaseError> {
    let rows = transaction.query(&FUNCTIONS, &[]).await?;
    let entry =
        |row: &tokio_postgres::Row| (row.get("name"), Recorded { hash: row.get("hash"), release: row.get("release") });
    Ok(rows.iter().map(entry).collect())
}

fn changed<'r>(
    source: &'static SchemaSource,
    recorded: &'r HashMap<String, Recorded>,
) -> impl Iterator<Item = &'static Function> + 'r {
    source
        .functions
        .iter()
        .filter(|function| recorded.get(function.name).is_none_or(|then| then.hash != function.hash()))
}

async fn create(
    transaction: &Transaction<'_>,
    schema: &SchemaName,
    function: &Function,
    release: &str,
) -> Result<(), DatabaseError> {
    transaction.batch("replacing a function", &render(function.sql, schema)).await?;
    drop_signatures(transaction, schema, function.name, Which::Stale).await?;
    transaction.execute(&RECORD_FUNCTION, &[&function.name, &function.hash(), &release]).await?;
    Ok(())
}

/// Which signatures under a name are dropped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    All,
    /// Those that this transaction did not write: callers would reach one or the other by chance.
    Stale,
}

async fn drop_signatures(
    transaction: &Transaction<'_>,
    schema: &SchemaName,
    name: &str,
    which: Which,
) -> Result<(), DatabaseError> {
    for row in transaction.query(&SIGNATURES, &[&schema.as_str(), &name]).await? {
        let unwanted = which == Which::All || !row.get::<_, bool>("written_now");
        if unwanted && row.get::<_, bool>("ours") {
            let identity: &str = row.get("identity");
            transaction.batch("dropping an old function", &format!("drop function {identity}")).await?;
        }
    }
    Ok(())
}

/// Whether release `a` is newer than `b`, by their three numbers.
fn is_newer(a: &str, b: &str) -> bool {
    let numbers = |release: &str| -> Vec<u64> {
        release.split(['.', '-', '+']).take(3).map(|part| part.parse().unwrap_or(0)).collect()
    };
    numbers(a) > numbers(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_compared_by_number() {
        assert!(is_newer("0.10.0", "0.9.9"));
        assert!(is_newer("1.0.0", "0.99.0"));
        assert!(!is_newer("0.1.0", "0.1.0"));
        assert!(!is_newer("0.1.0", "0.1.1-rc.1"));
    }
}
