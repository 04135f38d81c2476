//! What programs share that run scenarios and end in figures: the benches and the chaos run.
//!
//! - [`Report`]: rows for people, figures for machines; [`progress`] for a person who watches.
//! - [`supervisor`]: the program itself as the supervisor of its private PostgreSQL.
//! - [`program`]: the `reveille` of this tree, built.
//! - [`Plain`] and [`wire`]: a connection to PostgreSQL and one to a server, with nothing of ours
//!   between.
//! - [`process`]: what the kernel knows of a process.
//!
//! Unlike the parts for tests these return errors: a program can print them.

pub mod process;
pub mod program;
pub mod supervisor;
pub mod wire;

mod ending;
mod machine;
mod plain;
mod quantile;
mod report;

pub use ending::{Showing, exit_code, show, unless_ended};
pub use plain::Plain;
pub use quantile::quantile;
pub use report::Report;

/// Prints what is being done now.
pub fn progress(what: &str) {
    eprintln!("… {what}");
}
