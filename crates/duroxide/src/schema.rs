//! The tables of a provider, as migrations.
//!
//! Owns the numbered texts. Applied by
//! [`Database::migrate_from`](reveille::database::Database::migrate_from) to a schema that holds
//! nothing else.
//!
//! Next: [`crate::statements`].

use reveille::service::{Migration, SchemaSource};

/// Everything a provider's schema is made of.
pub(crate) static SOURCE: SchemaSource = SchemaSource {
    migrations: &[Migration { version: 3, name: "store", sql: include_str!("../sql/migrations/0003_store.sql") }],
    functions: &[],
    release: env!("CARGO_PKG_VERSION"),
};
