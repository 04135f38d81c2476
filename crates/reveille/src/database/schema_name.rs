//! The name of the schema that holds everything Reveille makes.
//!
//! Promises that a [`SchemaName`] can be substituted into SQL text wherever an identifier may
//! stand. Refuses what PostgreSQL would silently cut, reserve or reject.

use std::fmt;
use std::str::FromStr;

/// PostgreSQL cuts longer identifiers silently, so two long names could become one.
const LONGEST: usize = 63;

/// The quote around function bodies in `sql/functions`; a name that contains it would end the body
/// early.
pub(crate) const BODY_QUOTE: &str = "$reveille$";

/// A schema's name as it is spelled in the catalog: any legal identifier, however awkward.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SchemaName(String);

impl SchemaName {
    /// The name as the catalog spells it, without quotes.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name as an identifier in SQL text, always quoted: `select` and `We"ird` are names too.
    pub(crate) fn quoted(&self) -> String {
        format!("\"{}\"", self.0.replace('"', "\"\""))
    }

    /// The name as a string literal in SQL text, for printed scripts that can bind no parameters.
    pub(crate) fn literal(&self) -> String {
        format!("'{}'", self.0.replace('\'', "''"))
    }
}

impl Default for SchemaName {
    fn default() -> Self {
        Self("reveille".to_owned())
    }
}

impl FromStr for SchemaName {
    type Err = SchemaNameError;

    fn from_str(name: &str) -> Result<Self, SchemaNameError> {
        if name.is_empty() {
            return Err(SchemaNameError::Empty);
        }
        if name.len() > LONGEST {
            return Err(SchemaNameError::TooLong { bytes: name.len() });
        }
        if name.contains('\0') {
            return Err(SchemaNameError::Nul);
        }
        if name.starts_with("pg_") {
            return Err(SchemaNameError::Reserved);
        }
        if name.contains(BODY_QUOTE) {
            return Err(SchemaNameError::BodyQuote);
        }
        Ok(Self(name.to_owned()))
    }
}

impl fmt::Display for SchemaName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a text cannot be a schema's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaNameError {
    /// The text is empty.
    #[error("a schema name needs at least one character")]
    Empty,
    /// PostgreSQL would cut the name and might then find another schema.
    #[error("a schema name may have {LONGEST} bytes, this one has {bytes}")]
    TooLong {
        /// The length of the refused name.
        bytes: usize,
    },
    /// No identifier may contain the NUL character.
    #[error("a schema name may not contain the NUL character")]
    Nul,
    /// PostgreSQL keeps names that begin with `pg_` for itself.
    #[error("schema names that begin with pg_ belong to PostgreSQL")]
    Reserved,
    /// The name would end the quoted body of a function.
    #[error("a schema name may not contain {BODY_QUOTE}, which quotes the bodies of our functions")]
    BodyQuote,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> SchemaName {
        text.parse().unwrap()
    }

    #[test]
    fn quotes_are_doubled_inside_the_quoted_name() {
        assert_eq!(name("we\"ird Näme").quoted(), "\"we\"\"ird Näme\"");
        assert_eq!(name("it's").literal(), "'it''s'");
    }

    #[test]
    fn keywords_and_upper_case_are_names_like_any_other() {
        assert_eq!(name("select").quoted(), "\"select\"");
        assert_eq!(name("Upper").quoted(), "\"Upper\"");
    }

    #[test]
    fn what_postgresql_would_cut_or_reject_is_refused() {
        let refused = |text: &str| text.parse::<SchemaName>().unwrap_err();

        assert_eq!(refused(""), SchemaNameError::Empty);
        assert_eq!(refused(&"ä".repeat(32)), SchemaNameError::TooLong { bytes: 64 });
        assert_eq!(refused("a\0b"), SchemaNameError::Nul);
        assert_eq!(refused("pg_mine"), SchemaNameError::Reserved);
        assert_eq!(refused("a$reveille$b"), SchemaNameError::BodyQuote);
        assert_eq!(name(&"x".repeat(63)).as_str().len(), 63);
    }
}
