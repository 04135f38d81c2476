//! How fetches wait: long polling with the settings of `duroxide-pg`.
//!
//! Owns `LongPollConfig`, whose names users of `duroxide-pg` know, and turns it into the options of
//! the hub, the poll mode and the dispatcher. Promises to report every fault at once. Each default
//! that differs from the preset `SEED_001` says so.
//!
//! Next: [`crate::work_queue`].

use std::fmt;
use std::time::Duration;

use reveille_wake::{DispatcherOptions, FallbackCauses, HubOptions, Policy, PollModeOptions};

/// How a fetch waits for work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongPollConfig {
    /// Whether a fetch waits at all; if not, it claims once and returns at once. Default: false, as
    /// in `duroxide-pg`.
    pub enabled: bool,
    /// How often a claim round is made although nothing woke the queue. Default: 300 s.
    pub fallback_poll_interval: Duration,
    /// The longest single wait. Default: 30 s.
    pub max_wait_time: Duration,
    /// What is added to every due time. Default: zero, because nodes exchange delays computed by
    /// the database's clock, so clocks that differ do no harm. [`SEED_001`](Self::SEED_001): 100
    /// ms.
    pub timer_grace_period: Duration,
    /// The least time of fallback polling after its latest reason. Default: 10 s.
    /// [`SEED_001`](Self::SEED_001): 60 s.
    pub aggressive_poll_duration: Duration,
    /// How many consecutive rounds must succeed and find nothing before fallback polling ends.
    /// Default: 5; zero counts as one.
    pub aggressive_exit_threshold: u32,
    /// How long a wake may wait for its claim round although the dispatcher is free; more is a
    /// reason for fallback polling. Default: 100 ms.
    pub notify_delivery_timeout: Duration,
    /// How many claim rounds a wake costs while several fetches wait. Default:
    /// [`Policy::Competing`], one for all of them; with [`Policy::Broadcast`] every waiting fetch
    /// makes one of its own.
    pub policy: Policy,
    /// What begins fallback polling. Default: [`FallbackCauses::DEFAULT`].
    /// [`SEED_001`](Self::SEED_001): [`FallbackCauses::SEED_001`], with which an idle process polls
    /// all the time.
    pub causes: FallbackCauses,
}

impl LongPollConfig {
    /// The values of the design that `LongPollConfig` comes from, all of them, for programs that
    /// rely on its behaviour.
    pub const SEED_001: Self = Self {
        enabled: true,
        timer_grace_period: Duration::from_millis(100),
        aggressive_poll_duration: Duration::from_secs(60),
        causes: FallbackCauses::SEED_001,
        ..Self::DEFAULT
    };

    const DEFAULT: Self = Self {
        enabled: false,
        fallback_poll_interval: Duration::from_secs(300),
        max_wait_time: Duration::from_secs(30),
        timer_grace_period: Duration::ZERO,
        aggressive_poll_duration: Duration::from_secs(10),
        aggressive_exit_threshold: 5,
        notify_delivery_timeout: Duration::from_millis(100),
        policy: Policy::Competing,
        causes: FallbackCauses::DEFAULT,
    };

    /// The defaults, with waiting on.
    pub const fn on() -> Self {
        Self { enabled: true, ..Self::DEFAULT }
    }

    /// The same, or everything that is wrong with it.
    pub fn validate(self) -> Result<Self, ConfigFaults> {
        let positive = [
            ("fallback_poll_interval", self.fallback_poll_interval),
            ("max_wait_time", self.max_wait_time),
            ("notify_delivery_timeout", self.notify_delivery_timeout),
        ];
        let bounded = [
            ("fallback_poll_interval", self.fallback_poll_interval),
            ("max_wait_time", self.max_wait_time),
            ("timer_grace_period", self.timer_grace_period),
            ("aggressive_poll_duration", self.aggressive_poll_duration),
            ("notify_delivery_timeout", self.notify_delivery_timeout),
        ];
        let mut faults = Vec::new();
        faults.extend(
            positive.into_iter().filter(|(_, time)| time.is_zero()).map(|(setting, _)| ConfigFault::Zero { setting }),
        );
        let too_long = bounded.into_iter().filter(|(_, time)| *time > LONGEST);
        faults.extend(too_long.map(|(setting, value)| ConfigFault::TooLong { setting, value }));
        if faults.is_empty() { Ok(self) } else { Err(ConfigFaults(faults)) }
    }

    /// The hub's part.
    pub(crate) fn hub_options(&self) -> HubOptions {
        HubOptions::default().grace(self.timer_grace_period)
    }

    /// The poll mode's part. The causes of `SEED_001` bring the interval of `SEED_001` along.
    fn poll_mode_options(&self) -> PollModeOptions {
        let base = if self.causes == FallbackCauses::SEED_001 { SEED_001 } else { PollModeOptions::DEFAULT };
        PollModeOptions {
            causes: self.causes,
            minimum: self.aggressive_poll_duration,
            exit_threshold: self.aggressive_exit_threshold,
            ..base
        }
    }

    /// The dispatcher's part.
    pub(crate) fn dispatcher_options(&self) -> DispatcherOptions {
        DispatcherOptions::default()
            .waits(self.enabled)
            .policy(self.policy)
            .max_wait(self.max_wait_time)
            .fallback_interval(self.fallback_poll_interval)
            .delivery_timeout(self.notify_delivery_timeout)
            .poll_mode(self.poll_mode_options())
    }
}

impl Default for LongPollConfig {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The aggressive mode of that design: every wake enters it, for 60 s, at the 50 ms of duroxide's
/// idle sleep.
const SEED_001: PollModeOptions = PollModeOptions {
    causes: FallbackCauses::SEED_001,
    minimum: Duration::from_secs(60),
    exit_threshold: 5,
    shortest: Duration::from_millis(50),
    longest: Duration::from_millis(50),
};

/// Longer than this is a mistaken unit.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// One thing that is wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigFault {
    /// The setting must be longer than zero.
    Zero {
        /// The setting's name.
        setting: &'static str,
    },
    /// The setting is longer than a day.
    TooLong {
        /// The setting's name.
        setting: &'static str,
        /// Its value.
        value: Duration,
    },
}

impl fmt::Display for ConfigFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zero { setting } => write!(f, "{setting} must be longer than zero"),
            Self::TooLong { setting, value } => write!(f, "{setting} is {value:?}, longer than a day"),
        }
    }
}

/// Everything that is wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigFaults(pub Vec<ConfigFault>);

impl fmt::Display for ConfigFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let faults: Vec<String> = self.0.iter().map(ConfigFault::to_string).collect();
        f.write_str(&faults.join("; "))
    }
}

impl std::error::Error for ConfigFaults {}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    const fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn defaults_are_those_of_the_preset_unless_a_decision_says_otherwise() {
        let ours = LongPollConfig::default();
        let preset = LongPollConfig::SEED_001;

        assert!(!ours.enabled);
        assert_eq!(ours.fallback_poll_interval, secs(300));
        assert_eq!(ours.max_wait_time, secs(30));
        assert_eq!((ours.timer_grace_period, preset.timer_grace_period), (ms(0), ms(100)));
        assert_eq!((ours.aggressive_poll_duration, preset.aggressive_poll_duration), (secs(10), secs(60)));
        assert_eq!(ours.aggressive_exit_threshold, 5);
        assert_eq!(ours.notify_delivery_timeout, ms(100));
        assert_eq!(ours.policy, Policy::Competing);
        assert_eq!((ours.causes, preset.causes), (FallbackCauses::DEFAULT, FallbackCauses::SEED_001));
    }

    #[test]
    fn the_preset_has_its_own_poll_mode() {
        assert_eq!(LongPollConfig::default().poll_mode_options(), PollModeOptions::DEFAULT);
        assert_eq!(LongPollConfig::SEED_001.poll_mode_options(), SEED_001);
        assert_eq!((SEED_001.minimum, SEED_001.exit_threshold), (secs(60), 5));
        assert_eq!((SEED_001.shortest, SEED_001.longest), (ms(50), ms(50)));
    }

    #[test]
    fn every_fault_is_reported_at_once() {
        let config = LongPollConfig {
            fallback_poll_interval: ms(0),
            max_wait_time: secs(100_000),
            notify_delivery_timeout: ms(0),
            ..LongPollConfig::on()
        };

        let faults = config.validate().unwrap_err();

        assert_eq!(faults.0.len(), 3);
        assert!(faults.0.contains(&ConfigFault::TooLong { setting: "max_wait_time", value: secs(100_000) }));
        assert!(faults.to_string().contains("fallback_poll_interval must be longer than zero; "), "{faults}");
        assert_eq!(LongPollConfig::on().validate(), Ok(LongPollConfig::on()));
    }
}
