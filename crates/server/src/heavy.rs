//! Work that takes long leaves the threads that serve everybody.

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

/// Up to here parsing or spelling takes less than handing the thread's other tasks to another one
/// would gain.
const LARGE: usize = 256 * 1024;

/// Parse or spell about so many bytes. Without this the requests that share a thread with a large
/// one wait for it, and whoever asks whether the server lives hears nothing. A runtime of one
/// thread has no other to hand them to.
pub(crate) fn heavy<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    let elsewhere =
        || Handle::try_current().is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread);
    if bytes >= LARGE && elsewhere() { block_in_place(work) } else { work() }
}
