//! What others may know about a running server.

use std::net::SocketAddr;
use std::sync::Arc;

use reveille::messages::Messages;
use tokio::sync::Semaphore;

/// Tells about a server; it is stopped by the token that [`run`](crate::Server::run) was given.
#[derive(Debug, Clone)]
pub struct ServerHandle {
    address: SocketAddr,
    seats: Arc<Semaphore>,
    all: usize,
    messages: Messages,
}

impl ServerHandle {
    pub(super) fn new(address: SocketAddr, seats: Arc<Semaphore>, messages: Messages) -> Self {
        let all = seats.available_permits();
        Self { address, seats, all, messages }
    }

    /// The address it listens on, with the port that was found when any was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The queues it serves.
    pub fn messages(&self) -> &Messages {
        &self.messages
    }

    /// How many clients are connected.
    pub fn connections(&self) -> usize {
        self.all - self.seats.available_permits()
    }
}
