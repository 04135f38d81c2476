//! How often to claim without being woken.
//!
//! Owns the choice between waiting to be woken (the *long* pace) and *fallback polling* (the
//! *watchful* one; the seeds' aggressive mode). Promises that fallback polling is entered only by
//! the chosen causes, left only after a minimum time **and** enough consecutive empty, successful
//! rounds **and** with the link in order, and that its interval stays within bounds. A plain state
//! machine that is given the time; each dispatcher owns one, so that no two share or steal it.
//!
//! Next: [`crate::dispatcher`].

use std::time::{Duration, Instant};

use fastrand::Rng;

use crate::link::Link;
use crate::outcome::Outcome;
use crate::poll_mode_options::{FallbackCause, PollModeOptions};

/// The pace, as anybody may read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PollMode {
    /// Waits to be woken.
    Long,
    /// Fallback polling.
    Fallback {
        /// When the minimum time began: at the latest cause.
        since: Instant,
        /// What it was entered for.
        because: FallbackCause,
    },
}

impl PollMode {
    /// Whether it polls.
    pub const fn is_fallback(self) -> bool {
        matches!(self, Self::Fallback { .. })
    }
}

/// The beginning or the end of fallback polling, with its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PollModeChange {
    /// The pace before.
    pub from: PollMode,
    /// The pace now.
    pub to: PollMode,
}

/// Keeps the pace of one dispatcher.
#[derive(Clone, Debug)]
pub struct PollModeState {
    options: PollModeOptions,
    poll_mode: PollMode,
    link: Link,
    empties: u32,
    interval: Duration,
    random: Rng,
}

impl PollModeState {
    /// Starts at `now` with the link as it is: polls until the first echo, unless there is no hint
    /// source by choice.
    pub fn new(options: PollModeOptions, link: Link, now: Instant) -> Self {
        let options = options.within_bounds();
        let poll_mode = match link {
            Link::Off | Link::Proven { .. } => PollMode::Long,
            Link::Connecting { .. } => PollMode::Fallback { since: now, because: FallbackCause::Started },
            Link::Stalled { .. } | Link::Lost { .. } => {
                PollMode::Fallback { since: now, because: FallbackCause::LinkLost }
            }
        };
        Self { options, poll_mode, link, empties: 0, interval: options.shortest, random: Rng::new() }
    }

    /// The pace now.
    pub const fn mode(&self) -> PollMode {
        self.poll_mode
    }

    /// Something happened that may be a reason to poll.
    pub fn note(&mut self, cause: FallbackCause, now: Instant) -> Option<PollModeChange> {
        if !self.options.causes.contains(cause) {
            return None;
        }
        let from = self.poll_mode;
        self.empties = 0;
        // The first reason stays the one on display; only start-up gives way, because it alone ends
        // with the first echo.
        let because = match self.poll_mode {
            PollMode::Fallback { because, .. } if because != FallbackCause::Started => because,
            PollMode::Fallback { .. } | PollMode::Long => cause,
        };
        if !from.is_fallback() {
            self.interval = self.options.shortest;
        }
        self.poll_mode = PollMode::Fallback { since: now, because };
        (!from.is_fallback()).then_some(PollModeChange { from, to: self.poll_mode })
    }

    /// The link changed.
    pub fn follow(&mut self, link: Link, now: Instant) -> Option<PollModeChange> {
        let was_broken = self.link.is_broken();
        self.link = link;
        if link.is_broken() && !was_broken {
            return self.note(FallbackCause::LinkLost, now);
        }
        let started = matches!(self.poll_mode, PollMode::Fallback { because: FallbackCause::Started, .. });
        let heard = link.is_proven() || link == Link::Off;
        (started && heard).then(|| self.leave())
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

    /// How long to wait before the next polling round: `None` while it waits to be woken.
    pub fn interval(&mut self) -> Option<Duration> {
        self.poll_mode.is_fallback().then(|| self.pause())
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
        let PollMode::Fallback { since, because } = self.poll_mode else { return false };
        // Never long while no hint would be received, whatever the polling was begun for.
        let heard = self.link.is_proven() || self.link == Link::Off;
        let may_be_deaf = because != FallbackCause::Started && !self.options.causes.contains(FallbackCause::LinkLost);
        let link_in_order = heard || may_be_deaf;
        link_in_order
            && self.empties >= self.options.exit_threshold
            && now.saturating_duration_since(since) >= self.options.minimum
    }

    fn leave(&mut self) -> PollModeChange {
        let from = self.poll_mode;
        self.poll_mode = PollMode::Long;
        self.empties = 0;
        self.interval = self.options.shortest;
        PollModeChange { from, to: PollMode::Long }
    }

    fn lengthen(&mut self) {
        self.interval = (self.interval.saturating_mul(3) / 2).min(self.options.longest).max(self.options.shortest);
    }
}
