//! Limits on what one client, and all of them, may use.

use std::time::Duration;

use tracing::info;

/// Beyond this memory is the only limit.
const MOST_CONNECTIONS: usize = 1_000_000;
/// One connection of so many is reserved for requests that do not wait. Without it long polls could
/// take all connections, and no push, ack or health check would get one.
const RESERVED_OF: usize = 10;

/// As [`ServerOptions`](super::ServerOptions) describes them.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    pub(crate) max_connections: usize,
    pub(crate) head_timeout: Duration,
    pub(crate) body_timeout: Duration,
    pub(crate) write_timeout: Duration,
    pub(crate) max_body: usize,
    pub(crate) max_in_flight: usize,
    pub(crate) max_waiters: usize,
    pub(crate) max_poll_timeout: Duration,
    pub(crate) request_timeout: Duration,
    pub(crate) drain_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_connections: 20_000,
            head_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(30),
            max_body: 24 * 1024 * 1024,
            max_in_flight: 256 * 1024 * 1024,
            max_waiters: 18_000,
            max_poll_timeout: Duration::from_secs(300),
            request_timeout: Duration::from_secs(30),
            drain_timeout: Duration::from_secs(10),
        }
    }
}

impl Limits {
    /// Values that make no sense.
    pub(super) fn faults(&self) -> Vec<&'static str> {
        let faults = [
            (self.max_connections == 0, "a limit of zero connections would answer nobody"),
            (self.max_connections > MOST_CONNECTIONS, "a limit of more than a million connections limits nothing"),
            (self.head_timeout.is_zero(), "a request head timeout of zero would answer nobody"),
            (self.body_timeout.is_zero(), "a body timeout of zero would read no body"),
            (self.write_timeout.is_zero(), "a write timeout of zero would finish no answer"),
            (self.request_timeout.is_zero(), "a request timeout of zero would answer nobody"),
            (self.max_waiters == 0, "a limit of zero waiters would let nobody pop"),
        ];
        faults.into_iter().filter_map(|(holds, fault)| holds.then_some(fault)).collect()
    }

    /// Lowers the limit on waiting pops so that a share of the connections stays free for other
    /// requests. Nothing is reserved of a single connection.
    pub(super) fn reserve_connections(&mut self) {
        let reserved = self.max_connections.div_ceil(RESERVED_OF);
        let room = (self.max_connections - reserved).max(1);
        if self.max_waiters > room {
            let (asked, connections) = (self.max_waiters, self.max_connections);
            info!(
                asked,
                waiters = room,
                connections,
                "fewer pops may wait than configured, because the other connections are reserved"
            );
            self.max_waiters = room;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiters_leave_connections_to_the_others() {
        let effective = |max_connections, max_waiters| {
            let mut limits = Limits { max_connections, max_waiters, ..Limits::default() };
            limits.reserve_connections();
            limits.max_waiters
        };

        assert_eq!(effective(20_000, Limits::default().max_waiters), 18_000);
        assert_eq!([effective(20_000, 20_000), effective(20_000, 5)], [18_000, 5]);
        assert_eq!([effective(11, 11), effective(10, 11), effective(2, 9), effective(1, 9)], [9, 9, 1, 1]);
    }
}
