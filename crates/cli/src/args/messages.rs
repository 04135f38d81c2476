//! The command lines that use the queues of a running server.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  reveille push mail '{\"to\":\"ada\"}'                    one message
  reveille push mail --partition ada '1' '2' '3'        three, in order
  reveille push mail --file letters.jsonl               one for each line; `--file -` or no payload reads standard input

A payload is JSON; a text is written with its quotes: '\"hello\"'. With --json one line is printed for each message.")]
pub(crate) struct Push {
    /// The queue; it is created if it does not exist
    pub(crate) queue: String,
    /// Payloads, each of them JSON
    #[arg(value_name = "JSON")]
    pub(crate) payloads: Vec<String>,
    /// Read payloads from this file, one JSON a line; `-` is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "payloads")]
    pub(crate) file: Option<PathBuf>,
    /// The partition, whose messages stay in order
    #[arg(long, value_name = "NAME")]
    pub(crate) partition: Option<String>,
    /// An id of the message's own: pushed twice within the queue's window, it is stored once
    #[arg(long, value_name = "ID")]
    pub(crate) transaction_id: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  reveille pop mail --wait --batch 10             leases up to ten messages of one partition, and prints how to ack them
  reveille pop mail --json | reveille ack         takes one and settles it
  reveille pop mail --group audit --auto-ack      settles it with the pop, for the group audit

A leased message that is not acked comes again when the lease ends. An empty pop is no failure.")]
pub(crate) struct Pop {
    /// The queue
    pub(crate) queue: String,
    /// Only of this partition
    #[arg(long, value_name = "NAME")]
    pub(crate) partition: Option<String>,
    /// For this consumer group; each group sees every message
    #[arg(long, value_name = "NAME")]
    pub(crate) group: Option<String>,
    /// How many messages at most
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    pub(crate) batch: u32,
    /// Of how many partitions at most
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    pub(crate) partitions: u32,
    /// Wait for a message for this time
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "30s")]
    pub(crate) wait: Option<String>,
    /// Count messages as settled once they are popped
    #[arg(long)]
    pub(crate) auto_ack: bool,
    /// Where a new group begins: all, new, or a time such as 2026-05-16T10:20:30Z
    #[arg(long, value_name = "WHERE")]
    pub(crate) from: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// How a message is settled.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Status {
    Completed,
    Failed,
    Retry,
    Dlq,
}

impl Status {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Retry => "retry",
            Self::Dlq => "dlq",
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  reveille pop mail --json | reveille ack                                      all that was popped
  reveille ack --partition-id P --lease L order-7 order-8                      as `reveille pop` prints it
  reveille ack --partition-id P --lease L order-7 --status failed --error why  comes again, or goes to the dead letters

Exit code 1 if an ack was refused: the lease was lost, or there is no such message.")]
pub(crate) struct Ack {
    /// Transaction ids; without any, read from standard input as `reveille pop --json` prints them
    #[arg(value_name = "TRANSACTION_ID", requires = "partition_id")]
    pub(crate) transaction_ids: Vec<String>,
    /// The partition's id (not its name)
    #[arg(long, value_name = "ID")]
    pub(crate) partition_id: Option<String>,
    /// The lease they were popped under
    #[arg(long, value_name = "ID")]
    pub(crate) lease: Option<String>,
    /// The consumer group they were popped for
    #[arg(long, value_name = "NAME")]
    pub(crate) group: Option<String>,
    /// How to settle them
    #[arg(long, value_enum, default_value_t = Status::Completed)]
    pub(crate) status: Status,
    /// Why, for the dead letters
    #[arg(long, value_name = "TEXT")]
    pub(crate) error: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  reveille tail mail
  reveille tail mail --partition ada --json | jq .data

Shows what is pushed from now on, until Ctrl-C. It reads with a consumer group of its own, so no other group misses a
message, and deletes the group at the end. With --json, one message a line.")]
pub(crate) struct Tail {
    /// The queue
    pub(crate) queue: String,
    /// Only of this partition
    #[arg(long, value_name = "NAME")]
    pub(crate) partition: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  reveille queues --search mail                             how many messages wait, in those queues
  reveille queues configure mail leaseTime=60 retryLimit=5
  reveille queues show mail --json")]
pub(crate) struct Queues {
    #[command(flatten)]
    pub(crate) list: QueueList,
    #[command(subcommand)]
    pub(crate) step: Option<QueueStep>,
}

#[derive(Debug, Args)]
pub(crate) struct QueueList {
    /// Only of this namespace
    #[arg(long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
    /// Only of this task
    #[arg(long, value_name = "NAME")]
    pub(crate) task: Option<String>,
    /// Only those whose name contains this
    #[arg(long, value_name = "TEXT")]
    pub(crate) search: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum QueueStep {
    /// Print a queue's options and groups
    Show {
        /// The queue
        queue: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Create a queue, or change the named options
    #[command(
        after_help = "Options are those of docs/http.md, as in: reveille queues configure mail leaseTime=60 retryLimit=5"
    )]
    Configure {
        /// The queue
        queue: String,
        /// Options, as NAME=VALUE
        #[arg(value_name = "OPTION")]
        options: Vec<String>,
        /// The namespace it belongs to
        #[arg(long, value_name = "NAME")]
        namespace: Option<String>,
        /// The task it belongs to
        #[arg(long, value_name = "NAME")]
        task: Option<String>,
        /// Options that are not named go back to their defaults
        #[arg(long)]
        replace: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Delete a queue with everything in it
    Delete {
        /// The queue
        queue: String,
        /// Really do it
        #[arg(long)]
        yes: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  reveille groups --queue mail                              how far behind each group is
  reveille groups seek audit mail --to 2026-01-31T00:00:00Z
  reveille groups delete audit")]
pub(crate) struct Groups {
    /// Only of this queue
    #[arg(long, value_name = "NAME")]
    pub(crate) queue: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) step: Option<GroupStep>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum GroupStep {
    /// Print how far a group is in each partition
    Show {
        /// The group
        group: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Move a group within a queue; its consumers lose the leases they hold there
    Seek {
        /// The group
        group: String,
        /// The queue
        queue: String,
        #[command(flatten)]
        to: SeekTo,
        /// Only in this partition
        #[arg(long, value_name = "NAME")]
        partition: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Delete a group
    Delete {
        /// The group
        group: String,
        /// Only in this queue
        #[arg(long, value_name = "NAME")]
        queue: Option<String>,
        /// Keep where it began: when it pops again, it starts there and not where a new group would
        #[arg(long)]
        keep_subscription: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct SeekTo {
    /// Past all messages
    #[arg(long)]
    pub(crate) to_end: bool,
    /// To the oldest message that is kept
    #[arg(long)]
    pub(crate) to_beginning: bool,
    /// To the first message that is not older than this
    #[arg(long, value_name = "TIME")]
    pub(crate) to: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  reveille dlq --queue mail                                 the newest 100
  reveille dlq redrive --queue mail --group audit
  reveille dlq delete --all")]
pub(crate) struct Dlq {
    #[command(flatten)]
    pub(crate) which: Letters,
    /// How many at most, the newest first
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    pub(crate) limit: u32,
    /// How many of the newest to skip
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    pub(crate) offset: u32,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) step: Option<LetterStep>,
}

/// Which dead letters.
#[derive(Debug, Default, Args)]
pub(crate) struct Letters {
    /// Of this queue
    #[arg(long, value_name = "NAME")]
    pub(crate) queue: Option<String>,
    /// Of this consumer group
    #[arg(long, value_name = "NAME")]
    pub(crate) group: Option<String>,
    /// Of this partition
    #[arg(long, value_name = "NAME")]
    pub(crate) partition: Option<String>,
    /// Dead since then
    #[arg(long, value_name = "TIME")]
    pub(crate) from: Option<String>,
    /// Dead before then
    #[arg(long, value_name = "TIME")]
    pub(crate) to: Option<String>,
    /// With this in their error or transaction id
    #[arg(long, value_name = "TEXT")]
    pub(crate) text: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LetterStep {
    /// Put dead letters back to work, for the group that gave up on them
    Redrive(ChosenLetters),
    /// Delete dead letters
    Delete(ChosenLetters),
}

#[derive(Debug, Args)]
pub(crate) struct ChosenLetters {
    /// Their ids, as `reveille dlq` prints them
    #[arg(value_name = "ID")]
    pub(crate) ids: Vec<String>,
    #[command(flatten)]
    pub(crate) which: Letters,
    /// All there are
    #[arg(long)]
    pub(crate) all: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
