//! Where a group is in a partition, and the rules of settling.

use reveille::messages::{LeaseId, Outcome, Settled};

use super::Rules;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) committed: i64,
    /// Of the first unsettled message.
    pub(crate) failures: i32,
    pub(crate) deliveries: i32,
    /// The last claim's; it stays when the lease is over.
    pub(crate) nonce: Option<LeaseId>,
    pub(crate) through: i64,
    pub(crate) lease: Option<Lease>,
    /// A retry delay has not passed.
    pub(crate) later: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lease {
    pub(crate) ended: bool,
}

/// How far a consumer came, and what stopped it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    Through(i64),
    At(i64, Outcome, Option<String>),
    Released,
}

#[derive(Debug)]
pub(crate) struct Report<'a> {
    pub(crate) lease: LeaseId,
    pub(crate) end: &'a End,
    pub(crate) strict: bool,
}

/// A message for the dead letters.
#[derive(Debug)]
pub(super) struct Burial {
    pub(super) seq: i64,
    pub(super) failures: i32,
    pub(super) deliveries: i32,
    pub(super) error: Option<String>,
}

impl Cursor {
    /// Whether nobody has it, and nothing is waited for.
    pub(super) fn is_free(&self) -> bool {
        !self.later && self.lease.is_none_or(|lease| lease.ended)
    }

    /// Whether the next message was claimed too often already.
    pub(super) fn is_poisoned(&self, rules: &Rules) -> bool {
        self.deliveries >= rules.max_deliveries
    }

    /// How many messages a claim may take: one alone where consumers vanished with it before.
    pub(super) fn offers(&self, newest: i64) -> i64 {
        let there = newest - self.committed;
        if self.deliveries - self.failures > 1 { there.min(1) } else { there }
    }

    pub(super) fn pass(&mut self) {
        self.committed += 1;
        (self.failures, self.deliveries, self.lease) = (0, 0, None);
    }

    /// Whether it says again what put the last settled message among the dead letters; `buried` is
    /// whether it is there.
    pub(super) fn is_repeat(&self, report: &Report<'_>, buried: bool) -> bool {
        let End::At(seq, Outcome::Failed | Outcome::Dead, _) = report.end else { return false };
        self.nonce == Some(report.lease) && self.lease.is_none() && *seq == self.committed && buried
    }

    pub(super) fn settle(&mut self, report: &Report<'_>, rules: &Rules) -> (Settled, Option<Burial>) {
        if let Some(refused) = self.refuses(report) {
            return (refused, None);
        }
        match report.end {
            End::Released => {
                self.deliveries = (self.deliveries - 1).max(0);
                self.give_back();
                (Settled::Done { released: true, dead: false }, None)
            }
            End::Through(seq) => {
                let whole = *seq == self.through;
                (self.committed, self.failures, self.deliveries) = (*seq, 0, i32::from(!whole));
                if whole {
                    self.give_back();
                }
                (Settled::Done { released: whole, dead: false }, None)
            }
            End::At(seq, outcome, error) => self.stop(*seq, *outcome, error.clone(), rules),
        }
    }

    fn refuses(&self, report: &Report<'_>) -> Option<Settled> {
        if self.nonce != Some(report.lease) {
            return Some(Settled::LeaseLost);
        }
        let last = match report.end {
            End::Through(seq) if *seq <= self.committed => return Some(Settled::Already),
            End::At(seq, ..) if *seq <= self.committed => return Some(Settled::Passed),
            End::Through(seq) | End::At(seq, ..) => *seq,
            End::Released => self.through,
        };
        match self.lease {
            None if matches!(report.end, End::Through(_)) => Some(Settled::LeaseLost),
            None => Some(Settled::Already),
            Some(lease) if lease.ended && report.strict => Some(Settled::Expired),
            Some(_) if last > self.through => Some(Settled::Outside),
            Some(_) => None,
        }
    }

    /// Everything before `seq` is done, it is not.
    fn stop(&mut self, seq: i64, outcome: Outcome, error: Option<String>, rules: &Rules) -> (Settled, Option<Burial>) {
        if seq > self.committed + 1 {
            (self.failures, self.deliveries) = (0, 1);
        }
        self.committed = seq - 1;
        self.failures += i32::from(outcome == Outcome::Failed);
        self.give_back();
        let exhausted = outcome == Outcome::Failed && self.failures > rules.retry_limit;
        let dead = outcome == Outcome::Dead || exhausted;
        self.later = outcome == Outcome::Failed && !dead && rules.slow_retry;
        let kept = outcome == Outcome::Dead || (exhausted && rules.dead_letters);
        let burial = Burial { seq, failures: self.failures, deliveries: self.deliveries, error };
        if dead {
            self.pass();
        }
        (Settled::Done { released: true, dead }, kept.then_some(burial))
    }

    fn give_back(&mut self) {
        (self.lease, self.later) = (None, false);
    }
}
