//! The Rust of the documents that show workflows, compiled as a reader would compile it.
//!
//! Built for documentation tests only; see the module of the same name in `reveille`.

#[doc = include_str!("../../../README.md")]
mod readme {}

#[doc = include_str!("../../../docs/workflows.md")]
mod workflows {}
