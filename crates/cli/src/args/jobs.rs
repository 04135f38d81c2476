//! The command line of `reveille jobs`, which uses the database directly.

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  reveille jobs                                   every queue: jobs ready, scheduled and running, and the age of the oldest
  reveille jobs show 4711                         everything about a job, and the reason for its state
  reveille jobs dead --queue mail                 jobs that were given up
  reveille jobs redrive --queue mail --code unreachable
  reveille jobs pause mail

They use the database of --database-url, DATABASE_URL or the configuration, and wake the workers that are concerned.")]
pub(crate) struct Jobs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) step: Option<JobStep>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum JobStep {
    /// Print everything that is known about a job, and the reason for its state
    Show {
        /// Its id
        id: i64,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List dead jobs, in the order in which they were enqueued
    Dead(DeadJobs),
    /// Run scheduled jobs now
    Retry(ChosenJobs),
    /// Cancel jobs: at once if they wait; handlers that run are asked to stop
    Cancel(ChosenJobs),
    /// Put dead jobs back to work, with all their attempts
    Redrive(Redriven),
    /// Stop claims from a queue; running jobs go on
    Pause(ChosenQueue),
    /// End a pause
    Resume(ChosenQueue),
    /// Let SQL enqueue to a queue without a notification; workers check every fallback interval
    Quiet(Quieted),
}

#[derive(Debug, Args)]
pub(crate) struct DeadJobs {
    /// Of this queue
    #[arg(long, value_name = "NAME")]
    pub(crate) queue: Option<String>,
    /// Only those after this one
    #[arg(long, value_name = "ID")]
    pub(crate) after: Option<i64>,
    /// How many at most, up to 1000
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    pub(crate) limit: usize,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ChosenJobs {
    /// Their ids
    #[arg(value_name = "ID", required = true)]
    pub(crate) ids: Vec<i64>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("which").args(["ids", "queue", "kind", "code", "all"]).required(true).multiple(true))]
pub(crate) struct Redriven {
    /// Their ids, as `reveille jobs dead` prints them
    #[arg(value_name = "ID", conflicts_with_all = ["queue", "kind", "code", "all"])]
    pub(crate) ids: Vec<i64>,
    /// Those of this queue
    #[arg(long, value_name = "NAME")]
    pub(crate) queue: Option<String>,
    /// Those of this kind
    #[arg(long, value_name = "NAME")]
    pub(crate) kind: Option<String>,
    /// Those that ended with this error code
    #[arg(long, value_name = "CODE")]
    pub(crate) code: Option<String>,
    /// All there are
    #[arg(long, conflicts_with_all = ["queue", "kind", "code"])]
    pub(crate) all: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Quieted {
    #[command(flatten)]
    pub(crate) chosen: ChosenQueue,
    /// Notify again
    #[arg(long)]
    pub(crate) off: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ChosenQueue {
    /// The queue
    pub(crate) queue: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
