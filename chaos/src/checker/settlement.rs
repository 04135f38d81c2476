//! Lost, unexpected, settled twice, settled under a lease that was over.

use std::collections::HashMap;

use super::ledger::{Delivery, GroupId, Ledger, Settlement};
use super::{Column, Verdict};
use crate::clock::Micros;
use crate::history::{Key, Outcome, Place, Promise, Status};

/// A push that was answered is settled by every group, or the outcome of its settlement is unknown.
pub(super) fn nothing_lost(ledger: &Ledger<'_>, verdict: &mut Verdict) {
    for (id, group) in (0..).zip(&ledger.groups) {
        if !matches!(group.promise, Promise::Leased | Promise::Sought) {
            continue;
        }
        for (&key, message) in &ledger.messages {
            if message.place.queue != group.queue || message.ok.is_none() || is_settled(ledger, id, key) {
                continue;
            }
            let seen = ledger.deliveries_of(id, key).count();
            let waits = ledger.pending.contains(&(id, message.place));
            let (column, how) = if waits { (Column::Stuck, "still waits") } else { (Column::Lost, "is gone") };
            let sentence = format!("was stored, was delivered {seen} times, was never settled, and {how}");
            verdict.add(column, Some(key), Some(group.name), sentence);
        }
    }
}

fn is_settled(ledger: &Ledger<'_>, group: GroupId, key: Key) -> bool {
    let ended =
        |it: &Settlement<'_>| matches!(it.status, Status::Completed | Status::Dead) && it.outcome != Outcome::Refused;
    ledger.settlements_of(group, key).any(ended) || ledger.buried.contains(&(group, key))
}

/// Every message that was delivered was pushed, and to that place; every dead letter was failed.
pub(super) fn nothing_unexpected(ledger: &Ledger<'_>, verdict: &mut Verdict) {
    for (group, key) in ledger.delivered() {
        let name = ledger.group(group).name;
        match ledger.messages.get(&key) {
            None => verdict.add(Column::Unexpected, Some(key), Some(name), "was delivered and never pushed"),
            Some(message) if message.cannot_exist() => {
                verdict.add(Column::Unexpected, Some(key), Some(name), "was delivered although its push was undone");
            }
            Some(message) => {
                if ledger.deliveries_of(group, key).any(|delivery| delivery.place != message.place) {
                    verdict.add(Column::Unexpected, Some(key), Some(name), "was delivered from another place");
                }
            }
        }
    }
    for &(group, key) in &ledger.buried {
        let failed = |it: &Settlement<'_>| it.status != Status::Completed && it.outcome != Outcome::Refused;
        if !ledger.settlements_of(group, key).any(failed) {
            let name = ledger.group(group).name;
            verdict.add(Column::Unexpected, Some(key), Some(name), "is a dead letter and was never failed");
        }
    }
}

/// One first success for each message and group, unless the group was moved back between two.
pub(super) fn one_success(ledger: &Ledger<'_>, verdict: &mut Verdict) {
    for (group, key) in ledger.delivered() {
        let name = ledger.group(group).name;
        if ledger.group(group).promise == Promise::AutoAck {
            if ledger.deliveries_of(group, key).count() > 1 {
                verdict.add(Column::DoubleSuccess, Some(key), Some(name), "was popped twice, and settled by each pop");
            }
            continue;
        }
        let first = |it: &&Settlement<'_>| it.status == Status::Completed && it.outcome == Outcome::Ok;
        let successes: Vec<_> = ledger.settlements_of(group, key).filter(first).collect();
        for pair in successes.windows(2) {
            if !ledger.sought(group, pair[0].began, pair[1].at) {
                let sentence = format!("was completed under lease {} and again under {}", pair[0].lease, pair[1].lease);
                verdict.add(Column::DoubleSuccess, Some(key), Some(name), sentence);
            }
        }
    }
}

/// Deliveries of one place and group in the order they were recorded, with the latest beginning of
/// a pop so far.
type Handed = HashMap<(GroupId, Place), Vec<(Micros, Micros)>>;

/// Nothing is accepted under a lease once a pop that began after its delivery has brought another,
/// or after a seek.
pub(super) fn no_stale_success(ledger: &Ledger<'_>, verdict: &mut Verdict) {
    let handed = handed_out(ledger);
    let mut held: HashMap<(GroupId, &Place, &str), &Delivery<'_>> = HashMap::new();
    for delivery in &ledger.deliveries {
        held.entry((delivery.group, delivery.place, delivery.lease)).or_insert(delivery);
    }
    for settlement in ledger.settlements.iter().filter(|it| it.outcome == Outcome::Ok) {
        let Some(own) = held.get(&(settlement.group, settlement.place, settlement.lease)) else { continue };
        let name = ledger.group(settlement.group).name;
        let key = settlement.keys.iter().next();
        let later = handed.get(&(settlement.group, settlement.place.clone())).map_or(&[][..], Vec::as_slice);
        let before = later.partition_point(|&(at, _)| at < settlement.began);
        if before > 0 && later[before - 1].1 > own.at {
            let sentence = format!("lease {} was accepted after a later one was handed out", settlement.lease);
            verdict.add(Column::StaleSuccess, key, Some(name), sentence);
        }
        let moved = |seek: &super::ledger::Seek| {
            seek.group == settlement.group
                && seek.outcome == Outcome::Ok
                && own.at <= seek.began
                && seek.at < settlement.began
        };
        if ledger.seeks.iter().any(moved) {
            let sentence = format!("lease {} was accepted after its group was moved", settlement.lease);
            verdict.add(Column::StaleSuccess, key, Some(name), sentence);
        }
    }
}

fn handed_out(ledger: &Ledger<'_>) -> Handed {
    let mut handed = Handed::new();
    for delivery in &ledger.deliveries {
        let there = handed.entry((delivery.group, delivery.place.clone())).or_default();
        let latest = there.last().map_or(0, |&(_, latest)| latest).max(delivery.began);
        there.push((delivery.at, latest));
    }
    handed
}

/// What leaves a row happened once if its call was answered, and not at all if its transaction was
/// rolled back.
pub(super) fn effects(ledger: &Ledger<'_>, verdict: &mut Verdict) {
    let times: HashMap<(&str, Key), u32> =
        ledger.effects.iter().map(|&(queue, key, times)| ((queue, key), times)).collect();
    for group in ledger.groups.iter().filter(|group| group.promise == Promise::Effects) {
        for (&key, message) in ledger.messages.iter().filter(|(_, message)| message.place.queue == group.queue) {
            match times.get(&(group.queue, key)).copied().unwrap_or(0) {
                0 if message.ok.is_some() => {
                    verdict.add(Column::Lost, Some(key), Some(group.name), "was stored and never done");
                }
                0 | 1 if !message.cannot_exist() => {}
                0 => {}
                1 => verdict.add(Column::Unexpected, Some(key), Some(group.name), "was undone and is done"),
                more => {
                    let sentence = format!("was done for good {more} times");
                    verdict.add(Column::DoubleSuccess, Some(key), Some(group.name), sentence);
                }
            }
        }
    }
    for &(queue, key, _) in &ledger.effects {
        if !ledger.messages.contains_key(&key) {
            verdict.add(Column::Unexpected, Some(key), Some(queue), "was done and never requested");
        }
    }
}
