//! The hub and the guard under every interleaving shuttle finds. A lost wake is a deadlock, and shuttle reports it.
//!
//! ```sh
//! RUSTFLAGS="--cfg shuttle" CARGO_TARGET_DIR=target/shuttle cargo test -p reveille-wake --release --lib --test shuttle
//! ```
#![cfg(shuttle)]

mod baton;
mod table;
mod wake;
mod watch;
