//! One clock for all processes of a run: the kernel's monotonic one.

use nix::time::{ClockId, clock_gettime};

/// Microseconds on a clock that all processes of this machine share. Not a time of day.
pub(crate) type Micros = u64;

/// Now.
pub(crate) fn now() -> Micros {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC).map_or((0, 0), |time| (time.tv_sec(), time.tv_nsec()));
    time.0.unsigned_abs() * 1_000_000 + time.1.unsigned_abs() / 1000
}

/// Seconds as microseconds.
pub(crate) const fn seconds(seconds: u64) -> Micros {
    seconds * 1_000_000
}
