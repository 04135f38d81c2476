//! Keeps long computations off the threads that serve all clients.

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

/// Below this size parsing or serialising is cheaper than moving the thread's other tasks to
/// another thread.
const LARGE: usize = 256 * 1024;

/// Parses or serialises about so many bytes. Without this the requests that share a thread with a
/// large one wait for it, and health checks get no answer. A runtime with one thread has no other
/// to move them to.
pub(crate) fn heavy<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    let elsewhere =
        || Handle::try_current().is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread);
    if bytes >= LARGE && elsewhere() { block_in_place(work) } else { work() }
}
