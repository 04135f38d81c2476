//! Why a server cannot listen. Each error says in one sentence what to do.

use std::io;
use std::net::SocketAddr;

/// Nothing was opened; the variant says why.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The options cannot be used; every fault is listed.
    #[error("the HTTP options cannot be used: {}", .0.join("; "))]
    Options(Vec<&'static str>),
    /// Every machine that can reach the address could read and empty every queue.
    #[error(
        "{address} can be reached from other machines, and there is no authentication yet: listen on a loopback address \
         such as 127.0.0.1:{}, and let a proxy that authenticates lead to it", .address.port()
    )]
    Exposed {
        /// The address that was asked for.
        address: SocketAddr,
    },
    /// Another program listens there.
    #[error("{address} is already in use: stop the program that listens there, or choose another port")]
    InUse {
        /// The address that was asked for.
        address: SocketAddr,
    },
    /// The system refuses the address.
    #[error("cannot listen on {address}")]
    Refused {
        /// The address that was asked for.
        address: SocketAddr,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl ServerError {
    pub(crate) fn binding(address: SocketAddr) -> impl FnOnce(io::Error) -> Self {
        move |source| match source.kind() {
            io::ErrorKind::AddrInUse => Self::InUse { address },
            _ => Self::Refused { address, source },
        }
    }
}
