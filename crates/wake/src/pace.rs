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
use crate::pace_options::{PaceCause, PaceOptions};

/// The pace, as anybody may read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Waits to be woken.
    Long,
    /// Fallback polling.
    Watchful {
        /// When the minimum time began: at the latest cause.
        since: Instant,
        /// What it was entered for.
        because: PaceCause,
    },
}

impl Pace {
    /// Whether it polls.
    pub const fn is_watchful(self) -> bool {
        matches!(self, Self::Watchful { .. })
    }
}

/// The beginning or the end of fallback polling, with its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaceChange {
    /// The pace before.
    pub from: Pace,
    /// The pace now.
    pub to: Pace,
}

/// Keeps the pace of one dispatcher.
#[derive(Clone, Debug)]
pub struct Pacer {
    options: PaceOptions,
    pace: Pace,
    link: Link,
    empties: u32,
    interval: Duration,
    random: Rng,
}

impl Pacer {
    /// Starts at `now` with the link as it is: polls until the first echo, unless there is no hint
    /// source by choice.
    pub fn new(options: PaceOptions, link: Link, now: Instant) -> Self {
        let options = options.within_bounds();
        let pace = match link {
            Link::Off | Link::Proven { .. } => Pace::Long,
            Link::Connecting { .. } => Pace::Watchful { since: now, because: PaceCause::Started },
            Link::Stalled { .. } | Link::Lost { .. } => Pace::Watchful { since: now, because: PaceCause::LinkLost },
        };
        Self { options, pace, link, empties: 0, interval: options.shortest, random: Rng::new() }
    }

    /// The pace now.
    pub const fn pace(&self) -> Pace {
        self.pace
    }

    /// Something happened that may be a reason to poll.
    pub fn note(&mut self, cause: PaceCause, now: Instant) -> Option<PaceChange> {
        if !self.options.causes.contains(cause) {
            return None;
        }
        let from = self.pace;
        self.empties = 0;
        // The first reason stays the one on display; only start-up gives way, because it alone ends
        // with the first echo.
        let because = match self.pace {
            Pace::Watchful { because, .. } if because != PaceCause::Started => because,
            Pace::Watchful { .. } | Pace::Long => cause,
        };
        if !from.is_watchful() {
            self.interval = self.options.shortest;
        }
        self.pace = Pace::Watchful { since: now, because };
        (!from.is_watchful()).then_some(PaceChange { from, to: self.pace })
    }

    /// The link changed.
    pub fn follow(&mut self, link: Link, now: Instant) -> Option<PaceChange> {
        let was_broken = self.link.is_broken();
        self.link = link;
        if link.is_broken() && !was_broken {
            return self.note(PaceCause::LinkLost, now);
        }
        let started = matches!(self.pace, Pace::Watchful { because: PaceCause::Started, .. });
        let heard = link.is_proven() || link == Link::Off;
        (started && heard).then(|| self.leave())
    }

    /// A claim round ended.
    pub fn looked(&mut self, outcome: Outcome, now: Instant) -> Option<PaceChange> {
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
                self.note(PaceCause::LookFailed, now)
            }
        }
    }

    /// How long to wait before the next polling round: `None` while it waits to be woken.
    pub fn interval(&mut self) -> Option<Duration> {
        self.pace.is_watchful().then(|| self.pause())
    }

    /// How long to pause after a failed round, polling or not: a round that fails at once would
    /// otherwise spin.
    pub fn pause(&mut self) -> Duration {
        let PaceOptions { shortest, longest, .. } = self.options;
        // A tenth shorter or longer: processes that lost PostgreSQL together would otherwise poll
        // in step for minutes.
        self.interval.mul_f64(0.9 + 0.2 * self.random.f64()).clamp(shortest, longest)
    }

    fn may_leave(&self, now: Instant) -> bool {
        let Pace::Watchful { since, because } = self.pace else { return false };
        // Never long while no hint would be received, whatever the polling was begun for.
        let heard = self.link.is_proven() || self.link == Link::Off;
        let may_be_deaf = because != PaceCause::Started && !self.options.causes.contains(PaceCause::LinkLost);
        let link_in_order = heard || may_be_deaf;
        link_in_order
            && self.empties >= self.options.exit_threshold
            && now.saturating_duration_since(since) >= self.options.minimum
    }

    fn leave(&mut self) -> PaceChange {
        let from = self.pace;
        self.pace = Pace::Long;
        self.empties = 0;
        self.interval = self.options.shortest;
        PaceChange { from, to: Pace::Long }
    }

    fn lengthen(&mut self) {
        self.interval = (self.interval.saturating_mul(3) / 2).min(self.options.longest).max(self.options.shortest);
    }
}
