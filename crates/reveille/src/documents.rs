//! The Rust of the documents, compiled as a reader would compile it.
//!
//! Built for documentation tests only. A test compares this list, and that of `reveille-duroxide`,
//! with the documents that show Rust.

#[doc = include_str!("../../../docs/install.md")]
mod install {}

#[doc = include_str!("../../../docs/jobs.md")]
mod jobs {}

#[doc = include_str!("../../../docs/messages.md")]
mod messages {}

#[doc = include_str!("../../../docs/wake.md")]
mod wake {}
