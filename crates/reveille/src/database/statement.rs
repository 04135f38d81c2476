//! A statement: one file of SQL, its parameter types, and what its header promises.
//!
//! Statements are plain values in static tables, so that a test can prepare every one of them and
//! check the plans of those that name one. `{schema}` is the only placeholder; values travel as
//! parameters, never in the text.
//!
//! Next: [`super::connection`], which runs them.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use tokio_postgres::types::Type;

use super::schema_name::SchemaName;

/// One query, as its file states it.
#[derive(Debug)]
pub struct Statement {
    /// Its path under `sql/`, which is also what errors call it. Unique in the process.
    pub name: &'static str,
    /// The text of the file, with its header and `{schema}`.
    pub sql: &'static str,
    /// The types of `$1`, `$2`, …
    pub types: &'static [Type],
}

impl Statement {
    /// The text for one schema, without the header.
    pub fn text(&self, schema: &SchemaName) -> String {
        render(body(self.sql), schema)
    }

    /// The index that the header says the plan must use: the last word of
    /// `-- plan: … using <index>`.
    pub fn planned_index(&self) -> Option<&'static str> {
        let plan = header(self.sql).find_map(|line| line.strip_prefix("-- plan:"))?;
        plan.split_once(" using ").and_then(|(_, index)| index.split_whitespace().next())
    }
}

/// Put the schema's quoted name wherever `{schema}` stands. One pass: a schema may itself be called
/// `{schema}`.
pub(crate) fn render(sql: &str, schema: &SchemaName) -> String {
    sql.replace("{schema}", &schema.quoted())
}

fn header(sql: &'static str) -> impl Iterator<Item = &'static str> {
    sql.lines().take_while(|line| line.starts_with("--"))
}

/// The text after the header. Comments are not sent: they cost bytes on every unnamed statement.
pub(crate) fn body(sql: &str) -> &str {
    let length: usize = sql.split_inclusive('\n').take_while(|line| line.starts_with("--")).map(str::len).sum();
    &sql[length..]
}

/// The texts of one database: each statement is rendered once.
#[derive(Debug)]
pub(crate) struct Texts {
    schema: SchemaName,
    rendered: RwLock<HashMap<&'static str, Arc<str>>>,
}

impl Texts {
    pub(crate) fn new(schema: SchemaName) -> Self {
        Self { schema, rendered: RwLock::default() }
    }

    pub(crate) fn of(&self, statement: &Statement) -> Arc<str> {
        let known = self.rendered.read().unwrap_or_else(PoisonError::into_inner).get(statement.name).cloned();
        known.unwrap_or_else(|| {
            let text: Arc<str> = statement.text(&self.schema).into();
            let mut rendered = self.rendered.write().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(rendered.entry(statement.name).or_insert(text))
        })
    }
}

/// Declare statements from their files, and a table of them all.
///
/// ```text
/// statements! {
///     /// Says what it is for.
///     APPLIED = "database/migrate/applied.sql" (TEXT, INT4);
/// }
/// ```
macro_rules! statements {
    ($($(#[$doc:meta])* $name:ident = $path:literal ($($type:ident),*);)*) => {
        $(
            $(#[$doc])*
            pub(crate) static $name: $crate::database::Statement = $crate::database::Statement {
                name: $path,
                sql: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/sql/", $path)),
                types: &[$(tokio_postgres::types::Type::$type),*],
            };
        )*

        /// Every statement of this table.
        pub(crate) static ALL: &[&$crate::database::Statement] = &[$(&$name),*];
    };
}

pub(crate) use statements;

#[cfg(test)]
mod tests {
    use super::*;

    static CLAIM: Statement = Statement {
        name: "jobs/claim",
        sql: "-- Claim.\n-- plan:   index scan using job_due\nselect 1\nfrom {schema}.job -- {schema}\n",
        types: &[],
    };

    #[test]
    fn the_header_is_not_sent_and_the_schema_is_quoted() {
        let schema = "a \"b\" {schema}".parse().unwrap();

        assert_eq!(CLAIM.text(&schema), "select 1\nfrom \"a \"\"b\"\" {schema}\".job -- \"a \"\"b\"\" {schema}\"\n");
    }

    #[test]
    fn the_header_names_the_index_of_the_plan() {
        assert_eq!(CLAIM.planned_index(), Some("job_due"));
    }

    #[test]
    fn a_text_is_rendered_once() {
        let texts = Texts::new(SchemaName::default());

        assert!(Arc::ptr_eq(&texts.of(&CLAIM), &texts.of(&CLAIM)));
    }
}
