//! The options of a run.

use std::fmt::Write;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::plan::Kind;
use super::promotion::PROMOTION;

/// Settings of the scenario `chaos`.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Settings of chaos")]
pub struct Options {
    /// The seed of the plan of faults; a new one if absent. The same seed is the same plan.
    #[arg(long)]
    pub(crate) seed: Option<u64>,

    /// Seconds of traffic, most of them under faults. 60 if absent.
    #[arg(long)]
    pub(crate) seconds: Option<u64>,

    /// Only these faults, with commas between; also `disk-full` (on a small disk, as root),
    /// `promotion` (with a standby) and `none`.
    #[arg(long, value_delimiter = ',')]
    pub(crate) faults: Vec<String>,

    /// Breaks a promise behind the queue's back, to show that the checker notices.
    #[arg(long, value_delimiter = ',')]
    pub(crate) sabotage: Vec<Sabotage>,

    /// Messages a second that producers of the main queue try for. 2400 if absent.
    #[arg(long)]
    pub(crate) rate: Option<u32>,
}

/// How a promise is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sabotage {
    /// Gives a lease back to the consumer that lost it.
    Unfence,
    /// Deletes a message whose push was answered.
    Lose,
}

/// Words that may stand among faults and are none of the plan.
const NOT_PLANNED: [&str; 2] = ["none", PROMOTION];

impl Options {
    /// Whether this is a run with a standby.
    pub(crate) fn promotes(&self) -> bool {
        self.faults.iter().any(|fault| fault == PROMOTION)
    }

    /// How long traffic runs.
    pub(crate) fn span(&self) -> Duration {
        Duration::from_secs(self.seconds.unwrap_or(60))
    }

    pub(crate) fn rate(&self) -> u32 {
        self.rate.unwrap_or(2400)
    }

    pub(crate) fn kinds(&self) -> anyhow::Result<Vec<Kind>> {
        if self.faults.is_empty() {
            // A full disk needs a disk of its own.
            return Ok(Kind::ALL.iter().map(|&(kind, _)| kind).filter(|kind| *kind != Kind::DiskFull).collect());
        }
        self.faults.iter().filter(|name| !NOT_PLANNED.contains(&name.as_str())).map(|name| Kind::named(name)).collect()
    }

    /// The command line options that repeat this run.
    pub(crate) fn words(&self, seed: u64) -> String {
        let mut words = format!("--seed {seed} --seconds {}", self.span().as_secs());
        if !self.faults.is_empty() {
            words.push_str(" --faults ");
            words.push_str(&self.faults.join(","));
        }
        if let Some(rate) = self.rate {
            let _ = write!(words, " --rate {rate}");
        }
        words
    }
}
