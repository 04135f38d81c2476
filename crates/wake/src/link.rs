//! The health of the hint source.
//!
//! Owns what is known about the connection that brings hints: whether it is being made, proven by
//! an echo, silent, or lost. Promises that a link is *proven* only after the echo of a probe
//! arrived, and that a silent one is noticed within the time given: a half-open TCP connection
//! reports no error for hours. A plain state machine, driven by the listener; it connects nowhere.
//!
//! Next: [`crate::hub`], which trusts an empty claim only while the link is proven, and
//! [`crate::poll_mode`].

use std::time::{Duration, Instant};

use crate::clock;

/// The health of the hint source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// There is no hint source, by choice. Empty claims are not trusted, and nothing is wrong.
    Off,
    /// It was never proven so far.
    Connecting {
        /// Failed attempts so far.
        attempts: u32,
    },
    /// An echo arrived on this connection.
    Proven {
        /// When the first echo of this connection arrived.
        since: Instant,
    },
    /// It is connected, but an echo is overdue.
    Stalled {
        /// When that was noticed.
        since: Instant,
    },
    /// The connection is lost.
    Lost {
        /// When it was lost.
        since: Instant,
        /// Failed attempts to get it back so far.
        attempts: u32,
    },
}

impl Link {
    /// Whether a hint would be received.
    pub const fn is_proven(self) -> bool {
        matches!(self, Self::Proven { .. })
    }

    /// Whether it was proven once and is not now.
    pub const fn is_broken(self) -> bool {
        matches!(self, Self::Stalled { .. } | Self::Lost { .. })
    }

    /// The name for logs and metric labels; it never changes.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Connecting { .. } => "connecting",
            Self::Proven { .. } => "proven",
            Self::Stalled { .. } => "stalled",
            Self::Lost { .. } => "lost",
        }
    }
}

/// Follows one hint source: the listener reports what happened, and asks when to check.
#[derive(Clone, Debug)]
pub struct LinkState {
    link: Link,
    echo_within: Duration,
    /// When the probe was sent that waits for its echo.
    probed_at: Option<Instant>,
}

impl LinkState {
    /// A link that was never proven. An echo is overdue `echo_within` after its probe.
    pub const fn new(echo_within: Duration) -> Self {
        Self { link: Link::Connecting { attempts: 0 }, echo_within, probed_at: None }
    }

    /// The health now.
    pub const fn link(&self) -> Link {
        self.link
    }

    /// A probe was sent; its echo proves the link. A probe that already waits keeps its time, so
    /// that more probes never postpone the discovery of a silent link.
    pub fn probed(&mut self, now: Instant) {
        self.probed_at.get_or_insert(now);
    }

    /// An echo arrived.
    pub fn echoed(&mut self, now: Instant) -> Link {
        self.probed_at = None;
        if !self.link.is_proven() {
            self.link = Link::Proven { since: now };
        }
        self.link
    }

    /// When to call [`check`](Self::check).
    pub fn check_at(&self) -> Option<Instant> {
        self.probed_at.map(|at| clock::after(at, self.echo_within))
    }

    /// Notices an overdue echo.
    pub fn check(&mut self, now: Instant) -> Link {
        if self.link.is_proven() && self.check_at().is_some_and(|at| at <= now) {
            self.link = Link::Stalled { since: now };
        }
        self.link
    }

    /// The connection broke.
    pub fn lost(&mut self, now: Instant) -> Link {
        self.probed_at = None;
        match self.link {
            Link::Proven { .. } | Link::Stalled { .. } => self.link = Link::Lost { since: now, attempts: 0 },
            Link::Off | Link::Connecting { .. } | Link::Lost { .. } => {}
        }
        self.link
    }

    /// An attempt to connect failed.
    pub fn attempt_failed(&mut self, now: Instant) -> Link {
        self.lost(now);
        match &mut self.link {
            Link::Connecting { attempts } | Link::Lost { attempts, .. } => *attempts = attempts.saturating_add(1),
            Link::Off | Link::Proven { .. } | Link::Stalled { .. } => {}
        }
        self.link
    }
}
