//! How often to claim without being woken.
//!
//! Owns the choice between waiting to be woken and *fallback polling*. Promises that fallback
//! polling begins only for the chosen causes, ends only after a minimum time **and** enough
//! consecutive empty, successful rounds **and** with the link in order, and that its interval stays
//! within bounds. A plain state machine that is given the time; each dispatcher owns one.
//!
//! Next: [`crate::dispatcher`].

use std::time::{Duration, Instant};

use fastrand::Rng;

use crate::link::Link;
use crate::outcome::Outcome;
use crate::poll_mode_options::{FallbackCause, PollModeOptions};

/// How often a dispatcher claims without being woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PollMode {
    /// It waits to be woken, and claims once in a
    /// [`fallback_interval`](crate::DispatcherOptions::fallback_interval).
    Long,
    /// Fallback polling: it claims at short intervals.
    Fallback {
        /// When the minimum time began: at the latest cause.
        since: Instant,
        /// Why it began.
        because: FallbackCause,
    },
}

impl PollMode {
    /// Whether it is fallback polling.
    pub const fn is_fallback(self) -> bool {
        matches!(self, Self::Fallback { .. })
    }
}

/// The beginning or the end of fallback polling, with its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PollModeChange {
    /// The mode before.
    pub from: PollMode,
    /// The mode now.
    pub to: PollMode,
}

/// Keeps the poll mode of one dispatcher.
#[derive(Clone, Debug)]
pub struct PollModeState {
    options: PollModeOptions,
    mode: PollMode,
    link: Link,
    empties: u32,
    interval: Duration,
    random: Rng,
}

impl PollModeState {
    /// Starts at `now` with this link. Polls until the first echo, unless there is no hint source
    /// by choice.
    pub fn new(options: PollModeOptions, link: Link, now: Instant) -> Self {
        let options = options.within_bounds();
        let mode = match link {
            Link::Off | Link::Proven { .. } => PollMode::Long,
            Link::Connecting { .. } => PollMode::Fallback { since: now, because: FallbackCause::Started },
            Link::Stalled { .. } | Link::Lost { .. } => {
                PollMode::Fallback { since: now, because: FallbackCause::LinkLost }
            }
        };
        Self { options, mode, link, empties: 0, interval: options.shortest, random: Rng::new() }
    }

    /// The mode now.
    pub const fn mode(&self) -> PollMode {
        self.mode
    }

    /// Something happened that may be a reason to poll.
    pub fn note(&mut self, cause: FallbackCause, now: Instant) -> Option<PollModeChange> {
        if !self.options.causes.contains(cause) {
            return None;
        }
        let from = self.mode;
        self.empties = 0;
        // The first cause stays on display. Only `Started` gives way, because it alone ends with
        // the first echo.
        let because = match self.mode {
            PollMode::Fallback { because, .. } if because != FallbackCause::Started => because,
            PollMode::Fallback { .. } | PollMode::Long => cause,
        };
        if !from.is_fallback() {
            self.interval = self.options.shortest;
        }
        self.mode = PollMode::Fallback { since: now, because };
        (!from.is_fallback()).then_some(PollModeChange { from, to: self.mode })
    }

    /// The link changed.
    pub fn follow(&mut self, link: Link, now: Instant) -> Option<PollModeChange> {
        let was_broken = self.link.is_broken();
        self.link = link;
        if link.is_broken() && !was_broken {
            return self.note(FallbackCause::LinkLost, now);
        }
        let started = matches!(self.mode, PollMode::Fallback { because: FallbackCause::Started, .. });
        (started && self.link_in_order()).then(|| self.leave())
    }

    /// A claim round ended.
    pub fn round_ended(&mut self, outcome: Outcome, now: Instant) -> Option<PollModeChange> {
        match outcome {
            Outcome::Empty => {
                self.empties = self.empties.saturating_add(1);
                self.lengthen();
                self.may_leave(now).then(|| self.leave())
            }
            Outcome::UnderFilled | Outcome::Filled | Outcome::Contended => {
                self.empties = 0;
                self.interval = self.options.shortest;
                None
            }
            Outcome::Failed => {
                self.empties = 0;
                self.lengthen();
                self.note(FallbackCause::RoundFailed, now)
            }
        }
    }

    /// How long to wait before the next polling round. `None` unless it is fallback polling.
    pub fn interval(&mut self) -> Option<Duration> {
        self.mode.is_fallback().then(|| self.pause())
    }

    /// How long to pause after a failed round, polling or not: a round that fails at once would
    /// otherwise spin.
    pub fn pause(&mut self) -> Duration {
        let PollModeOptions { shortest, longest, .. } = self.options;
        // A tenth shorter or longer: processes that lost PostgreSQL together would otherwise poll
        // in step for minutes.
        self.interval.mul_f64(0.9 + 0.2 * self.random.f64()).clamp(shortest, longest)
    }

    fn may_leave(&self, now: Instant) -> bool {
        let PollMode::Fallback { since, because } = self.mode else { return false };
        // Whatever it began for, polling goes on while no hint would be received, unless a lost
        // link is no cause to poll.
        let link_may_be_lost =
            because != FallbackCause::Started && !self.options.causes.contains(FallbackCause::LinkLost);
        (self.link_in_order() || link_may_be_lost)
            && self.empties >= self.options.exit_threshold
            && now.saturating_duration_since(since) >= self.options.minimum
    }

    fn link_in_order(&self) -> bool {
        self.link.is_proven() || self.link == Link::Off
    }

    fn leave(&mut self) -> PollModeChange {
        let from = self.mode;
        self.mode = PollMode::Long;
        self.empties = 0;
        self.interval = self.options.shortest;
        PollModeChange { from, to: PollMode::Long }
    }

    fn lengthen(&mut self) {
        self.interval = (self.interval.saturating_mul(3) / 2).min(self.options.longest).max(self.options.shortest);
    }
}
