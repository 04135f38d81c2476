//! Reveille over HTTP.
//!
//! The door is thin: it parses, calls the library and renders. It holds no SQL and no queue logic.
//! What it owns is its sockets: who may connect, how long they may dawdle, how much they may send,
//! and how they are let go at the end.
//!
//! ```text
//!  ServerOptions ─bind─► Door ─serve─► Server ─run─► accept ─► connection ─► front ─► origin
//!                                       │                ─► body_door ─► router ─► api, health
//!                                       └────► ServerHandle: the address, the open connections
//! ```
//!
//! Modules in the order of a request's way.

mod error;
mod open_files;
mod options;
mod server;

mod bad_heads;
mod client;
mod connection;
mod stall;

mod body_door;
mod budget;
mod content;
mod front;
mod origin;
mod problem;
mod router;
mod scales;

mod api;
mod fault;
mod figures;
mod heavy;
mod service;
mod wire;

mod health;
mod prober;

pub use error::ServerError;
pub use options::ServerOptions;
pub use server::{Door, Server, ServerHandle};
