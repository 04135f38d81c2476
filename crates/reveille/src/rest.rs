//! How long looks that read much wait before one of them reads as much again: they may take a
//! twentieth of the time.

use std::time::Duration;

const SHARE: u32 = 20;
/// Whoever waits for what only such a look finds waits no longer than this.
pub(crate) const MAX: Duration = Duration::from_millis(800);

pub(crate) fn after(took: Duration, max: Duration) -> Duration {
    took.saturating_mul(SHARE).min(max)
}
