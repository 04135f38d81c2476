//! What a caller chooses about a dispatcher.
//!
//! Owns the settings and their defaults.
//!
//! Next: [`super::handle`].

use std::time::Duration;

use crate::backoff::BackoffOptions;
use crate::poll_mode_options::PollModeOptions;

/// How many claim rounds a wake costs while several demands wait for its key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Policy {
    /// One round for all of them: the demands compete for what it claims.
    #[default]
    Competing,
    /// One round for each of them, one after another: every demand makes an attempt of its own.
    Broadcast,
}

/// What a caller chooses about a dispatcher.
#[derive(Clone, Debug)]
pub struct DispatcherOptions {
    pub(crate) waits: bool,
    pub(crate) policy: Policy,
    pub(crate) max_demands: usize,
    pub(crate) max_round: usize,
    pub(crate) max_wait: Duration,
    pub(crate) fallback_interval: Duration,
    pub(crate) round_timeout: Duration,
    pub(crate) contended_pause: Duration,
    pub(crate) delivery_timeout: Duration,
    pub(crate) poll_mode: PollModeOptions,
    pub(crate) backoff: BackoffOptions,
}

impl DispatcherOptions {
    /// How many keys one demand may name.
    pub const MAX_KEYS: usize = 256;
}

impl Default for DispatcherOptions {
    fn default() -> Self {
        Self {
            waits: true,
            policy: Policy::default(),
            max_demands: 10_000,
            max_round: 512,
            max_wait: Duration::from_secs(24 * 3600),
            fallback_interval: Duration::from_secs(300),
            round_timeout: Duration::from_secs(60),
            contended_pause: Duration::from_millis(10),
            delivery_timeout: Duration::from_millis(100),
            poll_mode: PollModeOptions::DEFAULT,
            backoff: BackoffOptions::default(),
        }
    }
}

impl DispatcherOptions {
    /// Whether demands wait at all. If not, each is answered after one claim round. Default: yes.
    #[must_use]
    pub fn waits(mut self, waits: bool) -> Self {
        self.waits = waits;
        self
    }

    /// How many claim rounds a wake costs while several demands wait for its key. Default:
    /// [`Policy::Competing`].
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// How many demands may wait. Default: 10,000; zero counts as one.
    #[must_use]
    pub fn max_demands(mut self, limit: usize) -> Self {
        self.max_demands = limit.max(1);
        self
    }

    /// How many demands one claim round serves. Default: 512; zero counts as one.
    #[must_use]
    pub fn max_round(mut self, limit: usize) -> Self {
        self.max_round = limit.max(1);
        self
    }

    /// The longest wait of a demand: its patience is cut to this. Default: 24 h.
    #[must_use]
    pub fn max_wait(mut self, time: Duration) -> Self {
        self.max_wait = time;
        self
    }

    /// How often it claims from every key although nothing woke it, in case a hint was lost.
    /// Default: 5 min.
    #[must_use]
    pub fn fallback_interval(mut self, time: Duration) -> Self {
        self.fallback_interval = time;
        self
    }

    /// How long a claim round may take; then it is dropped and has failed. Default: 60 s.
    #[must_use]
    pub fn round_timeout(mut self, time: Duration) -> Self {
        self.round_timeout = time;
        self
    }

    /// How soon to claim again from a key whose work another claim held. Default: 10 ms.
    #[must_use]
    pub fn contended_pause(mut self, time: Duration) -> Self {
        self.contended_pause = time;
        self
    }

    /// How long a wake may wait for its claim round while the dispatcher is free. A longer wait is
    /// a reason for fallback polling. Default: 100 ms.
    #[must_use]
    pub fn delivery_timeout(mut self, time: Duration) -> Self {
        self.delivery_timeout = time;
        self
    }

    /// When fallback polling begins and ends, and how often it claims. Default:
    /// [`PollModeOptions::DEFAULT`].
    #[must_use]
    pub fn poll_mode(mut self, poll_mode: PollModeOptions) -> Self {
        self.poll_mode = poll_mode;
        self
    }

    /// How long fallback polling leaves an empty key alone. Default: [`BackoffOptions::default`].
    #[must_use]
    pub fn backoff(mut self, backoff: BackoffOptions) -> Self {
        self.backoff = backoff;
        self
    }
}
