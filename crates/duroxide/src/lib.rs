//! A PostgreSQL provider for `duroxide` that is woken by everything that makes work ready.
//!
//! Holds its place in the workspace; the provider itself is not here yet.
