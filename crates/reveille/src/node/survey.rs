//! The survey of a source of work, and how it becomes part of the heartbeat's statement.
//!
//! Next: [`super::heartbeat`].

use std::borrow::Cow;

use super::work_source::Column;
use crate::database::SchemaName;
use crate::database::statement::body;

/// The text of a `select` that says when work is due, for all waited keys of a source at once.
///
/// It reads the keys as arrays, one for each [`Column`] of a key and called by its name in braces,
/// such as `{queues}`; it answers with `ordinal bigint`, the place of a key in these arrays
/// (`unnest({queues}) with ordinality`), and with `due_s double precision`: the seconds, by the
/// database's clock, until the key's next row is ready; negative for how long it has been ready.
/// `{horizon}` stands for how many seconds ahead to read, `{schema}` for the schema. Keys without
/// ready or coming work are left out. Must be cheap: it is the whole idle load.
#[derive(Debug, Clone)]
pub struct Survey {
    text: Cow<'static, str>,
    schema: Option<SchemaName>,
}

/// Which parameters of the statement a survey reads.
pub(super) struct Places<'a> {
    /// The schema of the node, for surveys that name none.
    pub(super) schema: &'a SchemaName,
    pub(super) horizon: usize,
    /// The first of the columns.
    pub(super) columns: usize,
}

impl Survey {
    /// A survey with this text. Comments at its beginning are not sent.
    pub const fn new(text: &'static str) -> Self {
        Self { text: Cow::Borrowed(text), schema: None }
    }

    /// `{schema}` stands for this one.
    ///
    /// Default: the schema of the database the source is registered with.
    #[must_use]
    pub fn in_schema(mut self, schema: &SchemaName) -> Self {
        self.schema = Some(schema.clone());
        self
    }

    /// As part `number` of a statement. On lines of its own, because it may end in a comment.
    pub(super) fn part(&self, number: usize, columns: &[Column], places: &Places<'_>) -> String {
        let text = self.rendered(columns, places);
        format!("select {number}, ordinal::int8, due_s::float8 from (\n{text}\n) as survey_{number}")
    }

    /// In one pass: the name of a schema may look like a placeholder.
    fn rendered(&self, columns: &[Column], places: &Places<'_>) -> String {
        let mut rendered = String::with_capacity(self.text.len());
        let mut left = body(&self.text);
        while let Some((before, after)) = left.split_once('{') {
            rendered.push_str(before);
            let named =
                after.split_once('}').and_then(|(name, rest)| Some((self.stands_for(name, columns, places)?, rest)));
            match named {
                Some((value, rest)) => {
                    rendered.push_str(&value);
                    left = rest;
                }
                None => {
                    rendered.push('{');
                    left = after;
                }
            }
        }
        rendered.push_str(left);
        rendered
    }

    fn stands_for(&self, name: &str, columns: &[Column], places: &Places<'_>) -> Option<String> {
        match name {
            "schema" => Some(self.schema.as_ref().unwrap_or(places.schema).quoted()),
            "horizon" => Some(format!("${}", places.horizon)),
            _ => {
                let column = columns.iter().position(|column| column.name == name)?;
                Some(format!("${}", places.columns + column))
            }
        }
    }
}

impl From<&'static str> for Survey {
    fn from(text: &'static str) -> Self {
        Self::new(text)
    }
}

impl From<String> for Survey {
    fn from(text: String) -> Self {
        Self { text: Cow::Owned(text), schema: None }
    }
}

#[cfg(test)]
mod tests {
    use tokio_postgres::types::Type;

    use super::*;

    fn columns() -> [Column; 2] {
        [Column::new("queues", Type::INT4_ARRAY, vec![1]), Column::new("groups", Type::INT4_ARRAY, vec![2])]
    }

    #[test]
    fn each_column_is_a_parameter_of_its_own() {
        let schema = "odd name".parse().unwrap();
        let survey =
            Survey::new("-- Asks.\nselect {schema}.f({queues}, {groups}, {horizon}, '{}', {queues}) -- {cheap");

        let part = survey.part(3, &columns(), &Places { schema: &schema, horizon: 6, columns: 9 });

        let text = "select \"odd name\".f($9, $10, $6, '{}', $9) -- {cheap";
        assert_eq!(part, format!("select 3, ordinal::int8, due_s::float8 from (\n{text}\n) as survey_3"));
    }

    #[test]
    fn a_schema_may_be_called_like_a_placeholder() {
        let (node, own) = ("node".parse().unwrap(), "{queues}".parse().unwrap());
        let survey = Survey::new("select {schema}.f({queues})").in_schema(&own);

        let part = survey.part(0, &columns(), &Places { schema: &node, horizon: 1, columns: 2 });

        assert!(part.contains("select \"{queues}\".f($2)"), "{part}");
    }
}
