//! The options of the HTTP interface.
//!
//! Next: [`ServerOptions::bind`] opens the socket, [`crate::Server::run`] serves it.

mod callers;
mod limits;

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use reveille::database::Database;
use reveille::messages::{MessagesOptions, Subscription};
use tokio::net::TcpListener;

pub(crate) use limits::Limits;

use crate::context::PopDefaults;
use crate::error::ServerError;
use crate::open_files;
use crate::origin::Callers;
use crate::server::{BoundServer, Server, ServerHandle};

/// Where to listen, and what clients may cost.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    pub(crate) listen: SocketAddr,
    pub(crate) limits: Limits,
    pub(crate) defaults: PopDefaults,
    pub(crate) callers: Callers,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            listen: (Ipv4Addr::LOCALHOST, 6632).into(),
            limits: Limits::default(),
            defaults: PopDefaults::default(),
            callers: Callers::default(),
        }
    }
}

impl ServerOptions {
    /// The address to listen on. One that other machines can reach is refused, because there is no
    /// authentication yet.
    ///
    /// Default: 127.0.0.1:6632. Port 0: any free one.
    #[must_use]
    pub fn listen(mut self, address: SocketAddr) -> Self {
        self.listen = address;
        self
    }

    /// How many clients may be connected. One more gets a 503 with `retry-after`. Fewer may connect
    /// where the limit on open files is lower.
    ///
    /// Default: 20000 connections. Zero is refused, and so is more than a million.
    #[must_use]
    pub fn max_connections(mut self, connections: usize) -> Self {
        self.limits.max_connections = connections;
        self
    }

    /// How long a client has to send its next request head, from the moment it connected or got its
    /// last answer. So this is also how long an idle connection stays open.
    ///
    /// Default: 30 s. Zero is refused.
    #[must_use]
    pub fn head_timeout(mut self, limit: Duration) -> Self {
        self.limits.head_timeout = limit;
        self
    }

    /// How long a client has to send the body of a request.
    ///
    /// Default: 30 s. Zero is refused.
    #[must_use]
    pub fn body_timeout(mut self, limit: Duration) -> Self {
        self.limits.body_timeout = limit;
        self
    }

    /// How long a client has to take each mebibyte of a waiting answer, or the rest of the answer
    /// if that is less.
    ///
    /// Default: 30 s. Zero is refused.
    #[must_use]
    pub fn write_timeout(mut self, limit: Duration) -> Self {
        self.limits.write_timeout = limit;
        self
    }

    /// How large the body of a request may be.
    ///
    /// Default: 24 MiB. Unit: bytes. Zero: no bodies.
    #[must_use]
    pub fn max_body(mut self, bytes: usize) -> Self {
        self.limits.max_body = bytes;
        self
    }

    /// How many bytes of request bodies may be in memory at once, and how many of answers that
    /// their clients have not taken yet. Requests beyond it are refused with 429.
    ///
    /// Default: 256 MiB each. Zero counts as one kilobyte.
    #[must_use]
    pub fn max_in_flight(mut self, bytes: usize) -> Self {
        self.limits.max_in_flight = bytes;
        self
    }

    /// How many pops may wait at once. One more is refused with 429. A tenth of the connections,
    /// and at least one, is reserved for requests that do not wait: this limit is lowered to what
    /// the other connections have room for.
    ///
    /// Default: 18000. Zero is refused.
    #[must_use]
    pub fn max_waiters(mut self, waiters: usize) -> Self {
        self.limits.max_waiters = waiters;
        self
    }

    /// How long a request other than a waiting pop may take after its body was read.
    ///
    /// Default: 30 s. Zero is refused.
    #[must_use]
    pub fn request_timeout(mut self, limit: Duration) -> Self {
        self.limits.request_timeout = limit;
        self
    }

    /// How long a pop may wait at most; a longer timeout is shortened to this.
    ///
    /// Default: 5 min. Zero: no pop waits.
    #[must_use]
    pub fn max_poll_timeout(mut self, limit: Duration) -> Self {
        self.limits.max_poll_timeout = limit;
        self
    }

    /// How long a waiting pop waits that names no timeout.
    ///
    /// Default: 30 s. Zero: such a pop does not wait.
    #[must_use]
    pub fn pop_timeout(mut self, time: Duration) -> Self {
        self.defaults.timeout = time;
        self
    }

    /// How many messages a pop may bring that names no batch size.
    ///
    /// Default: 1. Zero counts as one.
    #[must_use]
    pub fn pop_batch(mut self, messages: u32) -> Self {
        self.defaults.batch = messages;
        self
    }

    /// Where a consumer group begins whose first pop names no subscription.
    ///
    /// Default: with all stored messages.
    #[must_use]
    pub fn subscription(mut self, subscription: Subscription) -> Self {
        self.defaults.subscription = subscription;
        self
    }

    /// How long running requests have to finish after shutdown began.
    ///
    /// Default: 10 s. Zero: they are cut off at once.
    #[must_use]
    pub fn drain_timeout(mut self, limit: Duration) -> Self {
        self.limits.drain_timeout = limit;
        self
    }

    /// Checks every option, without opening anything.
    pub fn check(&self) -> Result<(), ServerError> {
        let faults: Vec<&'static str> = self.limits.faults().into_iter().chain(self.callers.faults()).collect();
        if !faults.is_empty() {
            return Err(ServerError::Options(faults));
        }
        if !self.listen.ip().to_canonical().is_loopback() {
            return Err(ServerError::Exposed { address: self.listen });
        }
        Ok(())
    }

    /// Opens the socket and answers no client yet, so that a taken port is found before anything
    /// expensive is done. Clients that connect meanwhile wait.
    pub async fn bind(mut self) -> Result<BoundServer, ServerError> {
        self.check()?;
        self.limits.max_connections = open_files::make_room(self.limits.max_connections);
        self.limits.reserve_connections();
        let listener = TcpListener::bind(self.listen).await.map_err(ServerError::binding(self.listen))?;
        let address = listener.local_addr().map_err(ServerError::binding(self.listen))?;
        Ok(BoundServer { listener, address, limits: self.limits, defaults: self.defaults, callers: self.callers })
    }
}

impl BoundServer {
    /// The address, with the port that the system chose for port 0.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A server of the queues of this database on this socket. The server's own options limit how
    /// many pops may wait, whatever `messages` says.
    pub fn serve(self, database: &Database, messages: MessagesOptions) -> (Server, ServerHandle) {
        Server::new(self, database, messages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(listen: &str) -> String {
        ServerOptions::default().listen(listen.parse().unwrap()).check().unwrap_err().to_string()
    }

    #[test]
    fn an_address_that_others_can_reach_is_refused_with_advice() {
        for listen in ["0.0.0.0:6632", "[::]:6632", "192.168.1.5:6632", "[::ffff:10.0.0.1]:6632"] {
            let sentence = refused(listen);
            assert!(sentence.contains("no authentication yet"), "{sentence}");
            assert!(sentence.contains("127.0.0.1:6632"), "{sentence}");
        }
    }

    #[test]
    fn every_loopback_address_is_accepted() {
        for listen in ["127.0.0.1:0", "127.8.8.8:1", "[::1]:6632", "[::ffff:127.0.0.1]:6632"] {
            assert!(ServerOptions::default().listen(listen.parse().unwrap()).check().is_ok(), "{listen}");
        }
    }

    #[test]
    fn every_fault_is_reported_at_once() {
        let options = ServerOptions::default().max_connections(0).head_timeout(Duration::ZERO);
        let options = options.body_timeout(Duration::ZERO).write_timeout(Duration::ZERO);
        let options = options.allowed_hosts(["https://queue.example"]).allowed_origins(["null"]);

        let Err(ServerError::Options(faults)) = options.check() else { panic!("refused") };

        assert_eq!(faults.len(), 6);
    }
}
