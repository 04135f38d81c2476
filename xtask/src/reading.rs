//! Just enough understanding of Rust, SQL and Markdown to judge a text by its parts.
//!
//! Owns the splitting of a text into code, comments and strings, so that a check which seeks a
//! word in code is not fooled by a comment about it. Knows no rule of the repository.

pub(crate) mod attributes;
pub(crate) mod layers;
pub(crate) mod markdown;
pub(crate) mod rust;
pub(crate) mod sql;
pub(crate) mod words;
