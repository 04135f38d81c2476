//! A database per test, faults on demand, and events to wait for.
//!
//! - [`TestDatabase`]: a database of its own for each test, cloned from a migrated template on one
//!   shared private PostgreSQL without fsync. Costs tens of milliseconds, works under `cargo test`
//!   and one-process-per-test runners.
//! - [`TestCluster`]: a whole server for tests that must restart it, open its TCP port, or let a
//!   standby follow it.
//! - [`FaultProxy`]: a TCP proxy that cuts, delays, stalls or swallows on demand.
//! - [`Pooler`]: a transaction pooler before a test's database.
//! - [`generic_plan`]: what plan the server makes of a statement.
//! - [`plain_queue`]: the smallest queue that can be woken, for tests and benches of the wake
//!   engine.
//! - [`world`]: the queues of one database as two processes have them.
//! - [`scenario`]: what the programs share that run scenarios and end in figures.
//! - [`Events`]: a growing list that tests wait on, instead of time.
//! - [`chosen`]: a number that a person who runs a test may choose.
//!
//! Reads the environment (`REVEILLE_PG_BIN`, `CI`, and what [`chosen`] is asked for), as a test
//! runner's part may.

mod chosen;
mod events;
mod fault_proxy;
mod needs;

mod cluster;
mod supervisor;

mod database;
mod leftovers;
mod plan;
mod pooler;
mod retired;
mod template;

pub mod plain_queue;
pub mod scenario;
pub mod world;

pub use chosen::chosen;
pub use cluster::{Shutdown, TestCluster};
pub use database::{TestDatabase, connect};
pub use events::{Events, Reader};
pub use fault_proxy::{Direction, FaultProxy, Upstream};
pub use needs::needs;
pub use plan::{assert_planned, generic_plan};
pub use pooler::{LoginSettings, Pooler};

/// The root of the workspace, where cargo builds a program with the features of all members: built
/// elsewhere, or by its package, it would be compiled again with fewer.
pub(crate) const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
