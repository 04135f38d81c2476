//! The embedded server on real PostgreSQL, with real processes and real faults.
//!
//! `reveille-postgres run` is the user program; `kill -9` is `kill -9`. Processes are looked up in
//! `/proc`.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod fault_harness;
mod home;
mod program;
mod sql;
mod template;

mod adoption;
mod api;
mod crash;
mod directory;
mod fetch;
mod inheritance;
mod initdb;
mod needs_root;
mod outage;
mod refusals;
mod settings;
mod stale;
mod start;
