//! Reveille over HTTP.
//!
//! This interface is thin: it parses, calls the library and renders. It holds no SQL and no queue
//! logic. It owns its sockets: who may connect, how slow a client may be, how much it may send, and
//! how clients are disconnected at shutdown.
//!
//! ```text
//!  ServerOptions ─bind─► BoundServer ─serve─► Server ─run─► accept ─► connection ─► http_service
//!                                              │        ─► origin ─► request_body ─► router ─► api
//!                                              └────► ServerHandle: address, open connections
//! ```
//!
//! Modules in the order in which a request passes them.

mod error;
mod open_files;
mod options;
mod server;

mod bad_requests;
mod client;
mod connection;
mod stall;

mod budget;
mod content;
mod http_service;
mod origin;
mod problem;
mod request_body;
mod router;
mod scales;

mod api;
mod context;
mod fault;
mod figures;
mod heavy;
mod wire;

mod health;
mod prober;

pub use error::ServerError;
pub use options::ServerOptions;
pub use server::{BoundServer, Server, ServerHandle};
