//! The hub under every interleaving that shuttle finds. A lost wake is a deadlock, which shuttle
//! reports.
//!
//! ```sh
//! RUSTFLAGS="--cfg shuttle" CARGO_TARGET_DIR=target/shuttle \
//!     cargo test -p reveille-wake --release --lib --test shuttle
//! ```
#![cfg(shuttle)]

mod put_back;
mod table;
mod wake;
mod watch;
