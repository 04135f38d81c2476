//! Room for as many sockets as there may be clients.

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tracing::{debug, warn};

/// For the database, the logs, and whoever embeds us.
const OTHERS: u64 = 256;

/// Raise our own limit on open files as far as is needed and allowed. A server whose limit is too low would refuse clients
/// long before `max_connections`, and in a way that looks like a network fault.
pub(crate) fn make_room(connections: usize) {
    let needed = connections as u64 + OTHERS;
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return };
    if soft >= needed {
        return;
    }
    let wanted = needed.min(hard);
    match setrlimit(Resource::RLIMIT_NOFILE, wanted, hard) {
        Ok(()) => debug!(from = soft, to = wanted, "raised the limit on open files"),
        Err(error) => warn!(%error, limit = soft, needed, "cannot raise the limit on open files"),
    }
    if hard < needed {
        warn!(limit = hard, needed, "the hard limit on open files allows fewer clients than max_connections says");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_afterwards_or_as_much_as_is_allowed() {
        let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();

        make_room(2000);

        let (soft, same) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        assert!(soft >= (2000 + OTHERS).min(hard), "{soft} of {hard}");
        assert_eq!(same, hard);
    }
}
