//! The migrations as one text that a human can read, review and run with psql.
//!
//! Promises the same result as [`super::Migrator::up`] on a schema at the given version, with the
//! same bookkeeping, so that a program started afterwards finds nothing left to do. On a schema at
//! another version it changes nothing, also where psql goes on after an error: each transaction
//! first asks for the version that it builds on.

use std::fmt::Write;

use super::source::{BOOKKEEPING, SchemaSource, lock_key};
use crate::database::schema_name::SchemaName;
use crate::database::statement::{Statement, render};
use crate::database::statements::{RECORD, RECORD_FUNCTION};

/// Everything after version `from`; 0 for all.
pub(crate) fn script(source: &SchemaSource, schema: &SchemaName, from: i32) -> String {
    // An older schema cannot be upgraded: its version is not the one that the first transaction
    // asks for.
    let from = if from == 0 { 0 } else { from.max(source.oldest()) };
    let mut text = String::new();
    // As in sessions of our own: what a table or function means is decided when it is made.
    let lock = format!(
        "begin;\nset local search_path = pg_catalog, pg_temp;\nselect pg_advisory_xact_lock({});\n",
        lock_key(schema)
    );
    if from == 0 {
        let _ = writeln!(text, "{}", render("create schema if not exists {schema};\n", schema));
    }
    // On a new schema the first transaction makes the tables in which versions are recorded; it
    // fails where they are.
    let mut first = Some(if from == 0 { render(BOOKKEEPING, schema) } else { expected(schema, from) });
    for migration in source.migrations.iter().filter(|migration| migration.version > from) {
        let version = migration.version.to_string();
        let values = [version, literal(migration.name), literal(&migration.checksum()), schema.literal()];
        let _ = writeln!(
            text,
            "{lock}\n{}\n{}\n{}\ncommit;\n",
            first.take().unwrap_or_else(|| expected(schema, migration.version - 1)),
            render(migration.sql, schema),
            filled(&RECORD, schema, &values)
        );
    }
    let _ = writeln!(text, "{lock}\n{}", expected(schema, source.version()));
    for function in source.functions {
        let values = [literal(function.name), literal(&function.hash()), literal(source.release)];
        let _ = writeln!(text, "{}\n{}", render(function.sql, schema), filled(&RECORD_FUNCTION, schema, &values));
    }
    text.push_str("commit;\n");
    text
}

/// Ends the transaction when the schema is not at this version.
fn expected(schema: &SchemaName, version: i32) -> String {
    let check = format!(
        "do $reveille$\nbegin\n  \
         if (select max(version) from {{schema}}.migration) is distinct from {version} then\n    \
         raise exception 'the schema is not at version {version}, for which this was written';\n  \
         end if;\nend\n$reveille$;\n"
    );
    render(&check, schema)
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A statement with literals in the places of its parameters.
fn filled(statement: &Statement, schema: &SchemaName, values: &[String]) -> String {
    // Places first, schema last: neither a value nor the schema's name is searched for places.
    let body = statement.sql.lines().filter(|line| !line.starts_with("--")).collect::<Vec<_>>().join("\n");
    let mut text = String::new();
    let mut parts = body.split('$');
    text.push_str(&render(parts.next().unwrap_or_default(), schema));
    for part in parts {
        let digits = part.len() - part.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let place = part[..digits].parse::<usize>().ok().and_then(|place| values.get(place.wrapping_sub(1)));
        text.push_str(place.map_or("$", String::as_str));
        text.push_str(&render(&part[if place.is_some() { digits } else { 0 }..], schema));
    }
    format!("{};", text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_names_with_dollars_stay_as_they_are() {
        let schema = "a$1".parse().unwrap();

        let text = filled(&RECORD_FUNCTION, &schema, &["'$2'".into(), "'h'".into(), "'r'".into()]);

        assert!(
            text.starts_with("insert into \"a$1\".function (name, hash, release)\nvalues ('$2', 'h', 'r')"),
            "{text}"
        );
    }
}
