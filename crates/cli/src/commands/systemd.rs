//! What systemd learns from `serve`: that it serves, and that it is about to end.
//!
//! Says nothing unless `NOTIFY_SOCKET` names a socket, as systemd sets it for a unit of
//! `Type=notify`. A message that cannot be sent is no reason to stop serving: it is logged.

use sd_notify::NotifyState;
use tracing::warn;

/// Clients are answered from now on: units that are ordered after this one may start.
pub(super) fn ready() {
    report(NotifyState::Ready);
}

/// The drain has begun.
pub(super) fn stopping() {
    report(NotifyState::Stopping);
}

fn report(state: NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(&[state]) {
        warn!(%error, "could not report to systemd, which may take this server for hung");
    }
}
