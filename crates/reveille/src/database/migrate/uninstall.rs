//! Removes what we made, and only that.
//!
//! Each migration recorded what it made, so our objects are known from those of others in the
//! schema. Carefully: refuses when others live there or depend on ours. Forced: drops ours and what
//! depends on them, and leaves the others where they are. The schema itself goes when it is empty.

use std::collections::{BTreeSet, HashSet};

use super::Migrator;
use crate::database::error::DatabaseError;
use crate::database::statement::render;
use crate::database::statements::{FUNCTIONS, INSTALLED, MADE, OBJECTS};
use crate::database::transaction::Transaction;

/// How many foreign objects an error names.
const NAMED: usize = 5;

/// What to do when others use the schema too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Uninstall {
    /// Refuse, and say who does.
    Carefully,
    /// Drop ours with everything that depends on them; leave other objects in the schema alone.
    Forced,
}

/// What was removed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Uninstalled {
    /// The objects that were dropped, as `table "name"`.
    pub dropped: Vec<String>,
    /// What still lives in the schema, because we did not make it.
    pub left: Vec<String>,
}

struct Object {
    /// Kind and identity, as the migrations recorded it.
    whole: String,
    kind: String,
    identity: String,
    function: Option<String>,
    of_trigger: bool,
}

impl Migrator<'_> {
    /// Remove everything our migrations and functions made, in one transaction.
    pub(crate) async fn uninstall(mut self, how: Uninstall) -> Result<Uninstalled, DatabaseError> {
        let schema = self.schema();
        let transaction = self.begin().await?;
        let installed = transaction.query_opt(&INSTALLED, &[&schema.as_str()]).await?;
        if !installed.is_some_and(|row| row.get("has_tables")) {
            transaction.rollback().await?;
            return Err(DatabaseError::SchemaMissing { schema: schema.to_string() });
        }
        let (ours, others) = sort(&transaction, schema.as_str()).await?;
        let left: Vec<String> = others.into_iter().map(|object| object.whole).collect();
        if how == Uninstall::Carefully && !left.is_empty() {
            let objects = left.into_iter().take(NAMED).collect();
            return Err(DatabaseError::ForeignObjects { schema: schema.to_string(), objects });
        }
        let refused = drop_all(&transaction, &ours, how).await;
        refused.map_err(|error| used_by_others(error, schema.as_str()))?;
        if left.is_empty() {
            transaction.batch("dropping the schema", &render("drop schema {schema}", &schema)).await?;
        }
        transaction.commit_known().await?;
        Ok(Uninstalled { dropped: ours.into_iter().map(|object| object.whole).collect(), left })
    }
}

/// What lives in the schema: ours, and others'.
async fn sort(transaction: &Transaction<'_>, schema: &str) -> Result<(Vec<Object>, Vec<Object>), DatabaseError> {
    let made: HashSet<String> = transaction.query(&MADE, &[]).await?.iter().map(|row| row.get(0)).collect();
    let functions = transaction.query(&FUNCTIONS, &[]).await?;
    let functions: HashSet<String> = functions.iter().map(|row| row.get("name")).collect();
    let objects = transaction.query(&OBJECTS, &[&schema]).await?.into_iter().map(|row| Object {
        whole: row.get("object"),
        kind: row.get("kind"),
        identity: row.get("identity"),
        function: row.get("function"),
        of_trigger: row.get("of_trigger"),
    });
    Ok(objects.partition(|object| {
        made.contains(&object.whole) || object.function.as_ref().is_some_and(|name| functions.contains(name))
    }))
}

/// Drop kind by kind, all of a kind at once, so that they may refer to each other.
async fn drop_all(transaction: &Transaction<'_>, ours: &[Object], how: Uninstall) -> Result<(), DatabaseError> {
    let with = if how == Uninstall::Forced { "cascade" } else { "restrict" };
    // Functions may take a table's row as a parameter, so they go before tables; those of triggers
    // go after them.
    let turn = |object: &Object| (object.of_trigger, object.kind != "function", object.kind.clone());
    let turns: BTreeSet<_> = ours.iter().map(turn).collect();
    for next in turns {
        let identities: Vec<&str> =
            ours.iter().filter(|object| turn(object) == next).map(|object| object.identity.as_str()).collect();
        let sql = format!("drop {} if exists {} {with}", next.2, identities.join(", "));
        transaction.batch("dropping our objects", &sql).await?;
    }
    Ok(())
}

/// A drop without cascade is refused when something outside the schema depends on ours.
fn used_by_others(error: DatabaseError, schema: &str) -> DatabaseError {
    match (&error, error.sqlstate()) {
        (DatabaseError::Other { cause, .. }, Some("2BP01")) => {
            DatabaseError::ForeignObjects { schema: schema.to_owned(), objects: vec![cause.to_string()] }
        }
        _ => error,
    }
}
