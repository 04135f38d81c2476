//! What listener and broadcaster count.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Counters of one database's wake service, all since it was started.
#[derive(Debug, Default)]
pub(super) struct Figures {
    connects: AtomicU64,
    beats: AtomicU64,
    echo_us: AtomicU64,
    received: AtomicU64,
    announced: AtomicU64,
    sent: AtomicU64,
    peers: AtomicU64,
}

/// A snapshot of the counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct WakeFigures {
    /// How often the LISTEN connection was made; the first time included.
    pub connects: u64,
    /// Heartbeats that were answered.
    pub beats: u64,
    /// How long the last echo took.
    pub echo: Duration,
    /// Hints that arrived from other nodes.
    pub received: u64,
    /// Hints that this process had for other nodes.
    pub announced: u64,
    /// Statements that carried those hints; the fewer, the better they were coalesced.
    pub sent: u64,
    /// Other nodes alive at the last heartbeat.
    pub peers: u64,
}

impl WakeFigures {
    /// How many hints a statement carried on average; 1 when there were none.
    #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
    pub fn coalescing(&self) -> f64 {
        if self.sent == 0 { 1.0 } else { self.announced as f64 / self.sent as f64 }
    }
}

impl Figures {
    pub(super) fn connected(&self) {
        self.connects.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn beat(&self, peers: usize) {
        self.beats.fetch_add(1, Ordering::Relaxed);
        self.peers.store(peers as u64, Ordering::Relaxed);
    }

    pub(super) fn echoed(&self, took: Duration) {
        self.echo_us.store(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(super) fn received(&self, hints: usize) {
        self.received.fetch_add(hints as u64, Ordering::Relaxed);
    }

    pub(super) fn announced(&self) {
        self.announced.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn sent(&self) {
        self.sent.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn read(&self) -> WakeFigures {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        WakeFigures {
            connects: read(&self.connects),
            beats: read(&self.beats),
            echo: Duration::from_micros(read(&self.echo_us)),
            received: read(&self.received),
            announced: read(&self.announced),
            sent: read(&self.sent),
            peers: read(&self.peers),
        }
    }
}
