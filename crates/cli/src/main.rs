//! The `reveille` command.
//!
//! Reads the command line, the environment and the configuration file, composes the services of the
//! other crates, and prints. Holds no logic of its own: the library has it all.
//!
//! Modules in the order in which a run uses them.

mod args;
mod environment;

mod config;

mod commands;
mod open_database;
mod remote;

mod exit;
mod output;
mod table;

use std::process::ExitCode;

use args::Args;
use exit::{Failure, Style};

/// Gives memory back to the system some seconds after a burst. The C library's allocator keeps
/// whole arenas for the few small objects in them that are still in use: after a burst of large
/// pushes six times as much memory as needed.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let typed: Vec<_> = std::env::args_os().collect();
    if let Some(code) = commands::postgres::internal(&typed) {
        return code;
    }
    let style = if args::wants_json(&typed) { Style::Json } else { Style::Text };
    let done = Args::read(&typed).map_err(Failure::from).and_then(commands::run);
    done.unwrap_or_else(|failure| failure.report(style))
}
