//! What callers can read about a running server.

use std::net::SocketAddr;
use std::sync::Arc;

use reveille::messages::Messages;
use tokio::sync::Semaphore;

/// Shows the state of a server. The token given to [`run`](crate::Server::run) stops the server.
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

    /// The address it listens on, with the port that the system chose for port 0.
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
