//! What begins fallback polling, and how long it lasts.
//!
//! Owns the set of causes and the times of fallback polling. The default set is small on purpose:
//! if an empty fallback round begins polling, an idle process makes 107 queries per second instead
//! of 0.01.
//!
//! Next: [`crate::poll_mode`].

use std::time::Duration;

use crate::cause::Cause;

/// A reason to poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FallbackCause {
    /// No hint has been received yet. Ends with the first echo; always in force.
    Started,
    /// The link to the hint source is lost or silent.
    LinkLost,
    /// A claim round failed.
    RoundFailed,
    /// A wake was not claimed for in time although the dispatcher was free.
    Undelivered,
    /// A hint or a push of this process woke a key. Not in the default.
    Notified,
    /// A due time came. Not in the default.
    DueCame,
    /// The fallback round was made. Not in the default: with it a process is never idle.
    Fallback,
}

impl FallbackCause {
    /// The name for logs and metric labels; it never changes.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::LinkLost => "link_lost",
            Self::RoundFailed => "round_failed",
            Self::Undelivered => "undelivered",
            Self::Notified => "notified",
            Self::DueCame => "due_came",
            Self::Fallback => "fallback",
        }
    }

    /// The reason to poll that this cause of a round is, if it is one.
    pub(crate) const fn of(cause: Cause) -> Option<Self> {
        match cause {
            Cause::Pushed | Cause::Notified => Some(Self::Notified),
            Cause::Due | Cause::LeaseExpired => Some(Self::DueCame),
            Cause::Fallback => Some(Self::Fallback),
            _ => None,
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// A set of reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FallbackCauses(u8);

impl FallbackCauses {
    /// No reason at all, except start-up.
    pub const NONE: Self = Self(0);
    /// A lost link, a failed round, a wake that was not claimed for in time.
    pub const DEFAULT: Self =
        Self::NONE.with(FallbackCause::LinkLost).with(FallbackCause::RoundFailed).with(FallbackCause::Undelivered);
    /// The set of an earlier design: the default, and every hint, due time and fallback round.
    pub const SEED_001: Self =
        Self::DEFAULT.with(FallbackCause::Notified).with(FallbackCause::DueCame).with(FallbackCause::Fallback);

    /// This set and one more reason.
    #[must_use]
    pub const fn with(self, cause: FallbackCause) -> Self {
        Self(self.0 | cause.bit())
    }

    /// Whether the reason is in the set.
    pub const fn contains(self, cause: FallbackCause) -> bool {
        self.0 & cause.bit() != 0
    }
}

impl Default for FallbackCauses {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// When fallback polling begins and ends, and how often it claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PollModeOptions {
    /// The reasons to begin. Default: [`FallbackCauses::DEFAULT`].
    pub causes: FallbackCauses,
    /// How long it lasts at least after the latest reason. Default: 10 s; zero ends it with the
    /// last empty round.
    pub minimum: Duration,
    /// How many consecutive rounds must succeed and find nothing before it ends. Default: 5; zero
    /// counts as one, because only a round can end it.
    pub exit_threshold: u32,
    /// The interval it begins with and returns to whenever work is found. Default: 50 ms; less than
    /// 1 ms counts as that, because zero never grows and would poll without a pause.
    pub shortest: Duration,
    /// The longest interval, to which it grows while rounds are empty or fail. Default: 500 ms.
    pub longest: Duration,
}

impl PollModeOptions {
    /// The defaults named at each field.
    pub const DEFAULT: Self = Self {
        causes: FallbackCauses::DEFAULT,
        minimum: Duration::from_secs(10),
        exit_threshold: 5,
        shortest: Duration::from_millis(50),
        longest: Duration::from_millis(500),
    };

    /// With a shortest interval above zero, and a longest that is not below it.
    pub(crate) fn within_bounds(mut self) -> Self {
        self.shortest = self.shortest.max(Duration::from_millis(1));
        self.longest = self.longest.max(self.shortest);
        self
    }
}

impl Default for PollModeOptions {
    fn default() -> Self {
        Self::DEFAULT
    }
}
