//! Why a key is woken.
//!
//! Owns the closed list of everything that can make work ready. A wake carries a cause and a key,
//! never data. Promises that each cause has a stable name for logs and metrics. A new way for work
//! to become ready gets a cause here, a wake where it happens, and a test.
//!
//! Next: [`crate::hub`].

/// Why a key should be claimed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// A waiter armed a key that is not known to be empty: it claims once before it waits.
    Started,
    /// A consumer wants an answer now and does not wait.
    Asked,
    /// This process committed work: new, given back, redriven or resumed.
    Pushed,
    /// A hint came from another process. It may be forged or late.
    Notified,
    /// A delay or a window has passed, or a schedule has come.
    Due,
    /// A lease ended without being settled.
    LeaseExpired,
    /// Work was settled, which freed the work behind it (the next batch of a partition).
    Settled,
    /// A lease was given back before its end.
    Released,
    /// A cursor was moved.
    Sought,
    /// An option changed, or a pause ended, so that work may be eligible.
    Configured,
    /// The link to the hint source is proven again; hints sent meanwhile were not received.
    Reconnected,
    /// Another process died, perhaps between its commit and its hint.
    PeerLost,
    /// A claim round was filled, so there may be more.
    More,
    /// The heartbeat found work that no hint announced.
    Heartbeat,
    /// The rare round of a dispatcher that waits to be woken: a hint may have been lost.
    Fallback,
    /// A round of fallback polling.
    FallbackPolling,
}

impl Cause {
    /// Every cause, in the order of the declaration.
    pub const ALL: [Self; 16] = [
        Self::Started,
        Self::Asked,
        Self::Pushed,
        Self::Notified,
        Self::Due,
        Self::LeaseExpired,
        Self::Settled,
        Self::Released,
        Self::Sought,
        Self::Configured,
        Self::Reconnected,
        Self::PeerLost,
        Self::More,
        Self::Heartbeat,
        Self::Fallback,
        Self::FallbackPolling,
    ];

    /// The name for logs and metric labels; it never changes.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Asked => "asked",
            Self::Pushed => "pushed",
            Self::Notified => "notified",
            Self::Due => "due",
            Self::LeaseExpired => "lease_expired",
            Self::Settled => "settled",
            Self::Released => "released",
            Self::Sought => "sought",
            Self::Configured => "configured",
            Self::Reconnected => "reconnected",
            Self::PeerLost => "peer_lost",
            Self::More => "more",
            Self::Heartbeat => "heartbeat",
            Self::Fallback => "fallback",
            Self::FallbackPolling => "watchful",
        }
    }

    /// Whether the work was announced. If it was not, work that the claim finds is a missed wake.
    pub const fn is_announced(self) -> bool {
        !matches!(self, Self::Heartbeat | Self::Fallback | Self::FallbackPolling)
    }

    pub(crate) const fn index(self) -> usize {
        self as usize
    }
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
