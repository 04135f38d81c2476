//! A PostgreSQL provider for `duroxide` that is woken by everything that makes work ready.
//!
//! ```no_run
//! # async fn open() -> Result<(), reveille_duroxide::ProviderOpenError> {
//! use reveille_duroxide::PostgresProvider;
//!
//! let provider = PostgresProvider::options().url("postgres://localhost/app").open().await?;
//! // duroxide::runtime::Runtime::start_with_store(Arc::new(provider), activities, orchestrations)
//! # Ok(())
//! # }
//! ```
//!
//! Two queues, one path: a fetch is a demand to the queue's dispatcher (`work_queue`), which makes
//! one claim round for all demands after a wake-up (or one for each, if
//! [`LongPollConfig::policy`] says so) and sleeps otherwise. A turn or an activity is
//! claimed with `skip locked`, held under a token until a time by the database's clock, and settled
//! in one statement that compares the token while it writes.
//!
//! The modules, in the order a work item passes them: `work_item`, `queue` with `turns` and
//! `activities`, `ready` (which keys to wake), `work_queue` (which fetch gets the item), `provider`
//! (the contract), `admin`.

#[cfg(doctest)]
mod documents;
mod error;
mod nul;
mod number;
mod read_ahead;
mod schema;
mod statements;
mod store;
mod token;
mod work_item;

mod activities;
mod queue;
mod turns;

mod ready;
mod work_queue;

mod admin;
mod long_poll;
mod options;
mod provider;

pub use long_poll::{ConfigFault, ConfigFaults, LongPollConfig};
pub use options::{PostgresProviderOptions, ProviderOpenError};
pub use provider::PostgresProvider;
pub use reveille_wake::{FallbackCauses, Policy};
