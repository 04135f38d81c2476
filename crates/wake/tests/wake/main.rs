//! The wake engine without a database: every race and every clock rule that can be shown in one
//! process.
//!
//! Time is tokio's paused clock. The names B1 to B20 are the failures of the seeds in
//! `research/reliability.md`.
#![cfg(not(shuttle))]

mod backoff;
mod demands;
mod dispatcher;
mod dues;
mod hub;
mod idle;
mod link;
mod observe;
mod policy;
mod poll_mode;
mod put_back;
mod rig;
mod runner;
mod stretch;
mod trust;
