//! PostgreSQL queues that wake up instead of polling.
//!
//! Everything begins with a [`database::Database`]: connections, schema, statements and the words for what can go wrong
//! with them.

pub mod database;
pub mod jobs;
pub mod messages;
mod rest;

pub use bytes;
pub use tokio_postgres;
pub use uuid;
