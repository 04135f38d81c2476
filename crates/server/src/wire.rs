//! The formats of requests and answers: text to typed values, and back.
//!
//! Promises that a malformed value is found here, before the library is called, and reported as
//! JSON.

pub(crate) mod json;
pub(crate) mod moment;
pub(crate) mod names;
pub(crate) mod query;
pub(crate) mod quote;
