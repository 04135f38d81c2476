//! Which faults happen, when, to which process and for how long: decided by a seed alone, before
//! anything runs.

use std::time::Duration;

use anyhow::Context;

/// What can go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    KillServer,
    KillConsumer,
    KillProducer,
    KillWorker,
    KillPostmaster,
    KillSupervisor,
    StopServer,
    StopConsumer,
    KillListener,
    Cut,
    Stall,
    HalfOpen,
    CutCommit,
    Restart,
    HoldXmin,
    Flood,
    DiskFull,
}

impl Kind {
    /// Every kind, and how often it comes beside the others.
    pub(crate) const ALL: [(Self, u32); 17] = [
        (Self::KillServer, 16),
        (Self::KillConsumer, 34),
        (Self::KillProducer, 10),
        (Self::KillWorker, 6),
        (Self::KillPostmaster, 4),
        (Self::KillSupervisor, 2),
        (Self::StopServer, 2),
        (Self::StopConsumer, 4),
        (Self::KillListener, 5),
        (Self::Cut, 4),
        (Self::Stall, 2),
        (Self::HalfOpen, 2),
        (Self::CutCommit, 5),
        (Self::Restart, 1),
        (Self::HoldXmin, 1),
        (Self::Flood, 2),
        (Self::DiskFull, 8),
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::KillServer => "kill-server",
            Self::KillConsumer => "kill-consumer",
            Self::KillProducer => "kill-producer",
            Self::KillWorker => "kill-worker",
            Self::KillPostmaster => "kill-postmaster",
            Self::KillSupervisor => "kill-supervisor",
            Self::StopServer => "stop-server",
            Self::StopConsumer => "stop-consumer",
            Self::KillListener => "kill-listener",
            Self::Cut => "cut",
            Self::Stall => "stall",
            Self::HalfOpen => "half-open",
            Self::CutCommit => "cut-commit",
            Self::Restart => "restart",
            Self::HoldXmin => "hold-xmin",
            Self::Flood => "flood",
            Self::DiskFull => "disk-full",
        }
    }

    pub(crate) fn named(name: &str) -> anyhow::Result<Self> {
        let found = Self::ALL.iter().find(|(kind, _)| kind.name() == name);
        let known: Vec<&str> = Self::ALL.iter().map(|(kind, _)| kind.name()).collect();
        Ok(found.with_context(|| format!("no fault is called {name:?}; there are {}", known.join(", ")))?.0)
    }

    /// A process ends by SIGKILL.
    pub(crate) fn is_kill(name: &str) -> bool {
        name.starts_with("kill-") && name != Self::KillListener.name()
    }

    /// From and to, in milliseconds; zero for what is over at once. What is killed stays away for
    /// so long.
    fn lasts(self) -> (u64, u64) {
        match self {
            Self::KillServer => (0, 600),
            Self::KillConsumer | Self::KillProducer | Self::KillWorker => (0, 300),
            Self::StopConsumer => (3500, 6000),
            Self::StopServer => (3500, 5000),
            Self::Stall => (500, 4000),
            Self::HalfOpen => (1000, 4000),
            Self::HoldXmin => (5000, 15000),
            Self::Flood => (500, 2000),
            Self::DiskFull => (2000, 5000),
            Self::KillPostmaster
            | Self::KillSupervisor
            | Self::KillListener
            | Self::Cut
            | Self::CutCommit
            | Self::Restart => (0, 0),
        }
    }
}

/// One fault to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Planned {
    pub(crate) at: Duration,
    pub(crate) kind: Kind,
    /// Chooses among those it can hit.
    pub(crate) pick: usize,
    pub(crate) lasts: Duration,
}

/// The whole plan: about two faults a second, drawn by weight from `kinds`.
pub(crate) fn plan(seed: u64, span: Duration, kinds: &[Kind]) -> Vec<Planned> {
    let mut random = fastrand::Rng::with_seed(seed);
    let weighed: Vec<(Kind, u32)> = Kind::ALL.into_iter().filter(|(kind, _)| kinds.contains(kind)).collect();
    let sum: u32 = weighed.iter().map(|&(_, weight)| weight).sum();
    let mut planned = Vec::new();
    let mut at = Duration::from_millis(500);
    while at < span && sum > 0 {
        let mut drawn = random.u32(0..sum);
        let heavier = |&&(_, weight): &&(Kind, u32)| {
            let here = drawn < weight;
            drawn = drawn.wrapping_sub(weight);
            here
        };
        let kind = weighed.iter().find(heavier).map_or(Kind::KillConsumer, |&(kind, _)| kind);
        let (from, to) = kind.lasts();
        let lasts = Duration::from_millis(random.u64(from..=to));
        planned.push(Planned { at, kind, pick: random.usize(0..1 << 20), lasts });
        at += Duration::from_millis(random.u64(100..900));
    }
    planned
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Kind> {
        Kind::ALL.iter().map(|&(kind, _)| kind).collect()
    }

    #[test]
    fn a_seed_is_a_plan() {
        let span = Duration::from_secs(600);

        let first = plan(7, span, &all());

        assert_eq!(first, plan(7, span, &all()));
        assert_ne!(first, plan(8, span, &all()));
        for kind in all() {
            assert!(first.iter().any(|planned| planned.kind == kind), "{} never comes", kind.name());
        }
    }

    #[test]
    fn only_the_given_faults_are_planned() {
        let cuts = plan(1, Duration::from_secs(60), &[Kind::Cut]);

        assert!(cuts.len() > 50 && cuts.iter().all(|planned| planned.kind == Kind::Cut));
        assert!(plan(1, Duration::from_secs(60), &[]).is_empty());
        assert!(Kind::named("kill-moon").is_err());
    }
}
