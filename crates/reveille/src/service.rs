//! For building services: what every queue needs between a commit and the claim it wakes, written
//! once.
//!
//! Messages, jobs and the orchestrations of `reveille-duroxide` are built from these parts; an
//! application needs none of them. A service is a [`WorkSource`] (what consumers wait for), a
//! [`Source`](reveille_wake::Source) (how work is claimed), and around them:
//!
//! ```text
//!   commit ──► Notifier ──► Broadcaster ──► sources here ──► Claims: hub ─► dispatcher ─► demands
//!                                 └───────► its task ──► other nodes
//! ```
//!
//! With notifications off there is no broadcaster: the notifier wakes its own source.
//!
//! Next: `context`, `notifier`, `claims`, `lost_claims`, `low_water`, `upkeep`.

mod claims;
mod context;
pub(crate) mod lost_claims;
pub(crate) mod low_water;
mod notifier;
pub(crate) mod upkeep;

pub use crate::database::migrate::source::{Function, Migration, SchemaSource};
pub use crate::database::retry::{Idempotent, Retry};
pub use crate::database::sqlstate::{SqlClass, classify};
pub use crate::node::{Broadcaster, Column, ColumnKey, Hint, HubSource, Registration, Survey, WorkSource};
pub use claims::Claims;
pub use context::Context;
pub use notifier::Notifier;
