//! Checks whether a history keeps every promise.
//!
//! A pure function of the history. What no process can know (the answer to a client that was
//! killed, which of two overlapping pops was claimed first) never counts against the queue;
//! everything else does.

mod ledger;
mod order;
mod redelivery;
mod settlement;
#[cfg(test)]
mod tests;
mod wake;

use std::collections::BTreeMap;
use std::fmt;

use super::clock::Micros;
use super::history::{Count, Event, Key, Record};
use ledger::Ledger;
pub(crate) use redelivery::Redelivered;

/// A kind of broken promise, each a figure that must be 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Column {
    /// A push that was answered, and that a group never settled.
    Lost,
    /// A message that was never pushed, or certainly not stored, or came from another place.
    Unexpected,
    /// Two first successes for one message and group.
    DoubleSuccess,
    /// A success under a lease after another consumer had the next one.
    StaleSuccess,
    /// Another order than that of the pushes, or different orders for two groups.
    OutOfOrder,
    /// Still waiting when all faults have long ended.
    Stuck,
    /// A lease without a holder on a partition without messages.
    OrphanLease,
    /// A consumer that waited was not woken in time.
    MissedWake,
    /// Given out again although the first delivery was neither given back nor over.
    Unexplained,
    /// PostgreSQL ended a transaction because of a deadlock.
    Deadlock,
    /// Reconciliation found something to repair.
    Repaired,
    /// A server panicked.
    Panicked,
}

impl Column {
    pub(crate) const ALL: [Self; 12] = [
        Self::Lost,
        Self::Unexpected,
        Self::DoubleSuccess,
        Self::StaleSuccess,
        Self::OutOfOrder,
        Self::Stuck,
        Self::OrphanLease,
        Self::MissedWake,
        Self::Unexplained,
        Self::Deadlock,
        Self::Repaired,
        Self::Panicked,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::Unexpected => "unexpected",
            Self::DoubleSuccess => "double_success",
            Self::StaleSuccess => "stale_success",
            Self::OutOfOrder => "out_of_order",
            Self::Stuck => "stuck",
            Self::OrphanLease => "orphan_lease",
            Self::MissedWake => "missed_wake",
            Self::Unexplained => "unexplained",
            Self::Deadlock => "deadlocks",
            Self::Repaired => "repairs",
            Self::Panicked => "panics",
        }
    }
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One broken promise.
#[derive(Debug, Clone)]
pub(crate) struct Finding {
    pub(crate) column: Column,
    pub(crate) key: Option<Key>,
    pub(crate) group: Option<String>,
    pub(crate) sentence: String,
}

/// Broken promises, and what was counted on the way.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) findings: Vec<Finding>,
    pub(crate) counted: Counted,
}

/// Numbers that need not be 0.
#[derive(Debug, Default, Clone)]
pub(crate) struct Counted {
    pub(crate) pushed: u64,
    pub(crate) push_unknown: u64,
    pub(crate) delivered: u64,
    pub(crate) acked: u64,
    pub(crate) ack_refused: u64,
    pub(crate) ack_unknown: u64,
    pub(crate) effects: u64,
    pub(crate) redelivered: Redelivered,
    /// From an answered push to its first delivery, while all was calm.
    pub(crate) calm_wakes: Vec<Micros>,
    /// Beginnings of faults, by kind.
    pub(crate) faults: BTreeMap<String, u64>,
}

impl Verdict {
    pub(crate) fn count(&self, column: Column) -> usize {
        self.findings.iter().filter(|finding| finding.column == column).count()
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    fn add(&mut self, column: Column, key: Option<Key>, group: Option<&str>, sentence: impl Into<String>) {
        self.findings.push(Finding { column, key, group: group.map(ToOwned::to_owned), sentence: sentence.into() });
    }
}

/// Checks a history that is in the order of time.
pub(crate) fn check(history: &[Record]) -> Verdict {
    let ledger = Ledger::read(history);
    let mut verdict = Verdict { counted: ledger.counted(), ..Verdict::default() };
    settlement::nothing_lost(&ledger, &mut verdict);
    settlement::nothing_unexpected(&ledger, &mut verdict);
    settlement::one_success(&ledger, &mut verdict);
    settlement::no_stale_success(&ledger, &mut verdict);
    settlement::effects(&ledger, &mut verdict);
    order::in_order(&ledger, &mut verdict);
    redelivery::explained(&ledger, &mut verdict);
    wake::in_time(&ledger, &mut verdict);
    leftovers(history, &mut verdict);
    verdict
}

fn leftovers(history: &[Record], verdict: &mut Verdict) {
    for record in history {
        match &record.event {
            Event::Left { place, group, pending: 0, leased: true } => {
                let sentence = format!("{}/{} is leased and empty", place.queue, place.partition);
                verdict.add(Column::OrphanLease, None, Some(group), sentence);
            }
            Event::Counted { what, count } if *count > 0 => {
                let (column, what) = match what {
                    Count::Deadlocks => (Column::Deadlock, "deadlocks"),
                    Count::Repairs => (Column::Repaired, "repairs"),
                    Count::Panics => (Column::Panicked, "panics"),
                };
                for n in 1..=*count {
                    verdict.add(column, None, None, format!("{what}: {n} of {count}"));
                }
            }
            _ => {}
        }
    }
}
