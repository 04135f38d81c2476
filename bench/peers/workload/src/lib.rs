//! What the scenario `orchestrations` runs on a duroxide provider, whichever it is.
//!
//! Each provider is measured in a process of its own: a small program that implements [`Peer`] for
//! it and calls [`serve`]. It reads commands on standard input, one JSON object a line, and answers
//! each with one line on standard output. The workloads are written once, here, so that all
//! providers are measured in the same way.

mod bed;
mod command;
mod gaps;
mod latency;
mod round_trips;
mod stress;
mod validation;

use std::sync::Arc;

use async_trait::async_trait;
use duroxide::providers::Provider;

pub use command::serve;

/// A provider under measurement.
#[async_trait]
pub trait Peer: Send + Sync + 'static {
    /// Opens it on a schema that is made if it is not there. Dropping the provider closes it.
    async fn open(&self, url: &str, schema: &str) -> anyhow::Result<Arc<dyn Provider>>;

    /// Whether an empty fetch waits.
    fn waits(&self) -> bool;

    /// A condition on `pg_stat_activity` that holds for the backend which listens; `None` if
    /// nothing listens.
    fn listener(&self) -> Option<&'static str>;

    /// SQL that makes the history of instance `$1` unreadable, in a schema whose quoted name is
    /// given.
    fn spoil_history(&self, schema: &str) -> String;

    /// SQL for the most attempts of a message of instance `$1`, as `int4`.
    fn attempts(&self, schema: &str) -> String;
}
