//! Room for as many sockets as there may be clients, or fewer clients.

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tracing::{debug, info, warn};

/// For the database, the logs, and a program that embeds the server.
const OTHERS: u64 = 256;
/// Under a very low limit clients get at least one file of so many.
const AT_LEAST_OF: u64 = 8;

/// Raises this process's limit on open files as far as needed and allowed, and returns how many
/// connections it has room for. A server with more clients than files could open no connection to
/// its database, and a new client would get no answer at all.
pub(crate) fn make_room(connections: usize) -> usize {
    let needed = connections as u64 + OTHERS;
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return connections };
    if soft >= needed {
        return connections;
    }
    let wanted = needed.min(hard);
    let limit = match setrlimit(Resource::RLIMIT_NOFILE, wanted, hard) {
        Ok(()) => {
            debug!(from = soft, to = wanted, "raised the limit on open files");
            wanted
        }
        Err(error) => {
            warn!(%error, limit = soft, needed, "cannot raise the limit on open files");
            soft
        }
    };
    let room = room_in(limit).min(connections);
    if room < connections {
        info!(
            limit,
            asked = connections,
            connections = room,
            "fewer clients may connect, because the limit on open files is lower"
        );
    }
    room
}

/// How many connections a limit on files has room for.
fn room_in(limit: u64) -> usize {
    let room = limit.saturating_sub(OTHERS).max(limit / AT_LEAST_OF).max(1);
    usize::try_from(room).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_afterwards_or_as_much_as_is_allowed() {
        let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();

        let room = make_room(2000);

        let (soft, same) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        assert!(soft >= (2000 + OTHERS).min(hard), "{soft} of {hard}");
        assert_eq!(same, hard);
        assert!(room == 2000 || room == room_in(hard), "{room} of {hard}");
    }

    #[test]
    fn clients_leave_files_to_the_others() {
        assert_eq!([20_000, 300, 256, 64, 0].map(room_in), [19_744, 44, 32, 8, 1]);
    }
}
