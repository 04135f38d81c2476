//! How often to look without being rung.
//!
//! Owns the choice between the *long* pace (wait to be rung) and the *watchful* one (look by itself, the seeds' aggressive
//! mode). Promises that the watchful pace is entered only by the chosen causes, left only after a minimum time **and**
//! enough consecutive empty, successful looks **and** with the link in order, and that its interval stays within bounds.
//! A plain state machine that is told the time; whoever looks owns one, so that no two share or steal it.
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
    /// Waits to be rung.
    Long,
    /// Looks by itself.
    Watchful {
        /// When the minimum time began: at the latest cause.
        since: Instant,
        /// What it was entered for.
        because: PaceCause,
    },
}

impl Pace {
    /// Whether it looks by itself.
    pub const fn is_watchful(self) -> bool {
        matches!(self, Self::Watchful { .. })
    }
}

/// A change of pace, with its reason in the watchful side.
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
    /// Starts at `now` with the link as it is: watchful until the first echo, unless there is no hint source by choice.
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

    /// Something happened that may be a reason to watch.
    pub fn note(&mut self, cause: PaceCause, now: Instant) -> Option<PaceChange> {
        if !self.options.causes.contains(cause) {
            return None;
        }
        let from = self.pace;
        self.empties = 0;
        // The first reason stays the one on display; only start-up gives way, because it alone ends with the first echo.
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

    /// A look ended.
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

    /// How long to wait before looking unrung: `None` in the long pace, whose own look is the fallback.
    pub fn interval(&mut self) -> Option<Duration> {
        self.pace.is_watchful().then(|| self.pause())
    }

    /// How long to pause after a failed look, whatever the pace: a look that fails at once would otherwise spin.
    pub fn pause(&mut self) -> Duration {
        let PaceOptions { shortest, longest, .. } = self.options;
        // A tenth shorter or longer: processes that lost PostgreSQL together would otherwise look in step for minutes.
        self.interval.mul_f64(0.9 + 0.2 * self.random.f64()).clamp(shortest, longest)
    }

    fn may_leave(&self, now: Instant) -> bool {
        let Pace::Watchful { since, because } = self.pace else { return false };
        // Never long while nothing would be heard, whatever the watch was begun for.
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
