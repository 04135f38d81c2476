//! How what we say and hear is spelt: texts in, typed values out, and back.
//!
//! Promises that a fault of the spelling is found here, before the library is asked, and told as
//! JSON.

pub(crate) mod json;
pub(crate) mod moment;
pub(crate) mod names;
pub(crate) mod query;
pub(crate) mod told;
