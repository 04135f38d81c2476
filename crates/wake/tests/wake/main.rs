//! The wake engine without a database: every race and every clock rule that can be shown in one
//! process.
//!
//! Time is tokio's paused clock. B1 to B27 number the ways in which earlier designs lost or delayed
//! work; the comment at each number says how.
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
