//! PostgreSQL queues that wake up instead of polling.
//!
//! Everything begins with a [`database::Database`]: connections, schema, statements and the words
//! for what can go wrong with them.

mod batcher;
pub mod database;
mod doctor;
#[cfg(doctest)]
mod documents;
#[doc(hidden)]
pub mod exposition;
pub mod jobs;
pub mod messages;
pub mod moment;
mod node;
mod schema;
pub mod service;

pub use bytes;
pub use tokio_postgres;
pub use uuid;
