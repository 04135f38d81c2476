//! The doctor's checks: read-only, bounded, each answered in a sentence.
//!
//! Promises an answer to every check even when another one fails, and no check that takes longer
//! than a few seconds. Returns facts for programs and findings for people.
//!
//! Next: [`listen`], [`clock`], [`holders`], [`room`], [`undelivered`].

use std::time::Duration;

use tokio::time::timeout;

use crate::database::Database;
use crate::database::connector::Purpose;
use crate::database::durability::Durability;
use crate::database::error::DatabaseError;
use crate::database::options::DatabaseOptions;
pub use finding::{Finding, Verdict};
pub use holders::XminHolder;
pub use room::ConnectionCounts;
pub(crate) use statements::ALL as STATEMENTS;
pub(crate) use undelivered::stranded;

mod clock;
mod finding;
mod holders;
mod listen;
mod room;
mod schema;
mod statements;
mod undelivered;

/// How long one check may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the facts are compared with.
#[derive(Debug, Clone)]
pub struct ExamineOptions {
    connections_needed: u32,
    old_transaction: Duration,
    clock_skew: Duration,
}

impl Default for ExamineOptions {
    fn default() -> Self {
        let alone = DatabaseOptions::new("").connections_max();
        let connections_needed = u32::try_from(alone).unwrap_or(u32::MAX);
        Self { connections_needed, old_transaction: Duration::from_secs(300), clock_skew: Duration::from_secs(1) }
    }
}

impl ExamineOptions {
    /// How many connections all our processes together will open.
    ///
    /// Default: what a database with default options opens for itself, 7 connections. Zero: only
    /// the present use is judged.
    #[must_use]
    pub fn connections_needed(mut self, connections: u32) -> Self {
        self.connections_needed = connections;
        self
    }

    /// How long a session may keep dead rows from being removed before the doctor warns.
    ///
    /// Default: 5 min. Zero: every holder is named.
    #[must_use]
    pub fn old_transaction(mut self, age: Duration) -> Self {
        self.old_transaction = age;
        self
    }

    /// How far the clocks may be apart. Nothing depends on it, but people compare logs.
    ///
    /// Default: 1 s. Zero: any difference beyond the round trip counts.
    #[must_use]
    pub fn clock_skew(mut self, skew: Duration) -> Self {
        self.clock_skew = skew;
        self
    }
}

/// What was measured; `None` where the check failed.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// The server's version.
    pub postgres: String,
    /// The schema's version; 0 when nothing was applied.
    pub schema_version: Option<i32>,
    /// What a commit is worth.
    pub durability: Option<Durability>,
    /// How long a notification took from one connection to another.
    pub listen_echo: Option<Duration>,
    /// How many seconds the database's clock is ahead of ours; negative if behind.
    pub clock_ahead_seconds: Option<f64>,
    /// What keeps dead rows from being removed, worst first.
    pub xmin_holders: Option<Vec<XminHolder>>,
    /// How full the queue of notifications is, from 0 to 1.
    pub notify_queue: Option<f64>,
    /// Connections allowed and in use.
    pub connections: Option<ConnectionCounts>,
    /// Partitions with undelivered messages that no consumer will be woken for; `None` also when
    /// that takes too long to read.
    pub stranded: Option<i64>,
}

/// Everything the doctor found.
#[derive(Debug, Clone, Default)]
pub struct Examination {
    /// For programs.
    pub facts: Facts,
    /// For people, in the order of the checks.
    pub findings: Vec<Finding>,
}

impl Examination {
    /// The gravest verdict.
    pub fn verdict(&self) -> Verdict {
        self.findings.iter().map(|finding| finding.verdict).max().unwrap_or(Verdict::Ok)
    }
}

pub(crate) async fn examine(database: &Database, options: &ExamineOptions) -> Examination {
    let mut seen = Examination::default();
    seen.facts.postgres = database.server_version().to_string();
    seen.findings.push(Finding::ok("postgres", format!("PostgreSQL {} is supported", database.server_version())));
    let Some(connection) = seen.ask("connection", database.connection(Purpose::Examine)).await else {
        return seen;
    };
    let mut usable = false;
    if let Some(status) = seen.ask("schema", database.schema_status()).await {
        seen.findings.push(schema::judge(&status));
        seen.facts.schema_version = Some(status.found);
        usable = status.usable().is_ok();
    }
    if let Some(durability) = seen.ask("durability", Durability::read(&connection)).await {
        seen.findings.extend(schema::judge_durability(&durability));
        seen.facts.durability = Some(durability);
    }
    if let Some(echo) = seen.ask("listen", listen::echo(database.shared.as_ref(), &connection)).await {
        seen.findings.push(listen::judge(echo));
        seen.facts.listen_echo = echo;
    }
    if let Some(skew) = seen.ask("clock", clock::measure(&connection)).await {
        seen.findings.push(clock::judge(skew, options.clock_skew));
        seen.facts.clock_ahead_seconds = Some(skew.ahead_seconds);
    }
    if let Some(holders) = seen.ask("xmin", holders::read(&connection, options.old_transaction)).await {
        seen.findings.push(holders::judge(&holders, options.old_transaction));
        seen.facts.xmin_holders = Some(holders);
    }
    if let Some(usage) = seen.ask("notify queue", room::notify_queue(&connection)).await {
        seen.findings.push(room::judge_notify_queue(usage));
        seen.facts.notify_queue = Some(usage);
    }
    if let Some(counts) = seen.ask("connections", room::connections(&connection)).await {
        seen.findings.push(room::judge_connections(counts, options.connections_needed));
        seen.facts.connections = Some(counts);
    }
    // The last one: it may cost the connection. Without our tables there is nothing to check.
    if usable && let Some(stranded) = seen.ask("stranded", undelivered::stranded_in_time(&connection)).await {
        seen.findings.push(undelivered::judge(stranded));
        seen.facts.stranded = stranded;
    }
    seen
}

impl Examination {
    /// The answer to a check, or a finding that there is none.
    async fn ask<T>(
        &mut self,
        name: &'static str,
        question: impl Future<Output = Result<T, DatabaseError>>,
    ) -> Option<T> {
        let finding = match timeout(PATIENCE, Box::pin(question)).await {
            Ok(Ok(answer)) => return Some(answer),
            Ok(Err(error)) => Finding::unanswered(name, &error),
            Err(_) => Finding::fail(name, format!("no answer within {PATIENCE:?}"), "check for locks and load"),
        };
        self.findings.push(finding);
        None
    }
}
