//! Every delivery after the first has a reason.

use super::ledger::{Delivery, GroupId, Ledger, Settlement};
use super::{Column, Verdict};
use crate::history::{Key, Outcome, Promise, Status};

/// Deliveries after the first, by their reason.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Redelivered {
    /// The consumer failed or returned the message.
    pub(crate) nacked: u64,
    /// The lease was over: its holder was killed, stopped or cut off.
    pub(crate) lease_ended: u64,
    /// PostgreSQL was killed, and a claim does not wait for the disk.
    pub(crate) claim_forgotten: u64,
    /// The group was moved back.
    pub(crate) sought: u64,
    /// Two pops overlap, and either may have been first.
    pub(crate) overlapping: u64,
}

impl Redelivered {
    pub(crate) fn sum(self) -> u64 {
        self.nacked + self.lease_ended + self.claim_forgotten + self.sought + self.overlapping
    }
}

pub(super) fn explained(ledger: &Ledger<'_>, verdict: &mut Verdict) {
    for (group, key) in ledger.delivered() {
        if ledger.group(group).promise == Promise::AutoAck {
            continue;
        }
        let deliveries: Vec<&Delivery<'_>> = ledger.deliveries_of(group, key).collect();
        for pair in deliveries.windows(2) {
            judge(ledger, key, (pair[0], pair[1]), verdict);
        }
    }
}

fn judge(ledger: &Ledger<'_>, key: Key, (first, second): (&Delivery<'_>, &Delivery<'_>), verdict: &mut Verdict) {
    let group = first.group;
    let counted = &mut verdict.counted.redelivered;
    if ledger.sought(group, first.began, second.at) {
        counted.sought += 1;
    } else if let Some(acked) = acked_before(ledger, group, key, second) {
        let sentence = format!("came again under {} after its ack under {} was answered", second.lease, acked.lease);
        verdict.add(Column::Unexplained, Some(key), Some(ledger.group(group).name), sentence);
    } else if nacked(ledger, first, second) {
        counted.nacked += 1;
    } else if ledger.crashes.iter().any(|&(from, to)| from <= second.at && first.began <= to) {
        counted.claim_forgotten += 1;
    } else if second.at - first.began.min(second.at) >= ledger.group(group).lease {
        counted.lease_ended += 1;
    } else if second.began <= first.at {
        counted.overlapping += 1;
    } else {
        let sentence = format!("came again under {} while {} held it", second.lease, first.lease);
        verdict.add(Column::Unexplained, Some(key), Some(ledger.group(group).name), sentence);
    }
}

/// A success that was answered before the pop of this delivery began, and was not undone by a seek.
fn acked_before<'l, 'h>(
    ledger: &'l Ledger<'h>,
    group: GroupId,
    key: Key,
    second: &Delivery<'_>,
) -> Option<&'l Settlement<'h>> {
    let success = |it: &&Settlement<'_>| {
        it.status == Status::Completed
            && matches!(it.outcome, Outcome::Ok | Outcome::Again)
            && it.at < second.began
            && !ledger.sought(group, it.began, second.at)
    };
    ledger.settlements_of(group, key).find(success)
}

/// The first lease was given back: with this message, or with one before it in the same partition.
fn nacked(ledger: &Ledger<'_>, first: &Delivery<'_>, second: &Delivery<'_>) -> bool {
    first.keys.iter().any(|key| {
        ledger.settlements_of(first.group, key).any(|it| {
            it.lease == first.lease
                && it.status != Status::Completed
                && it.outcome != Outcome::Refused
                && it.began <= second.at
        })
    })
}
