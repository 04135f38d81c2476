//! Acks by transaction id: many messages, leases and partitions in one call.

use std::collections::BTreeMap;

use reveille::messages::{LeaseId, Outcome, Settled};

use super::cursor::Report;
use super::{End, Model, Place};

#[derive(Debug, Clone)]
pub(crate) struct Ack {
    pub(crate) place: Place,
    pub(crate) transaction_id: String,
    pub(crate) lease: Option<LeaseId>,
    pub(crate) outcome: Outcome,
    pub(crate) error: Option<String>,
    pub(crate) strict: bool,
    /// The sequence, if the process that gets the ack delivered the message and remembers it.
    pub(crate) remembered: Option<i64>,
    /// The queue is not the one it came from, if that was deleted.
    pub(crate) foreign: bool,
}

pub(super) struct Item<'a> {
    at: usize,
    seq: i64,
    ack: &'a Ack,
}

pub(super) type Bundles<'a> = BTreeMap<(Place, LeaseId), Vec<Item<'a>>>;

impl Model {
    pub(crate) fn acknowledge(&mut self, acks: &[Ack]) -> Vec<Settled> {
        let mut answers = vec![Settled::NotFound; acks.len()];
        let (bundles, refused) = self.bundled(acks);
        for (at, settled) in refused {
            answers[at] = settled;
        }
        for ((place, lease), items) in bundles {
            for (at, settled) in self.judge(place, lease, items) {
                answers[at] = settled;
            }
        }
        answers
    }

    /// The acks of each lease, and the answers to those that belong to none.
    pub(super) fn bundled<'a>(&self, acks: &'a [Ack]) -> (Bundles<'a>, Vec<(usize, Settled)>) {
        let (mut bundles, mut refused) = (Bundles::new(), Vec::new());
        for (at, ack) in acks.iter().enumerate() {
            match self.find(ack) {
                Ok((lease, seq)) => bundles.entry((ack.place, lease)).or_default().push(Item { at, seq, ack }),
                Err(settled) => refused.push((at, settled)),
            }
        }
        (bundles, refused)
    }

    fn find(&self, ack: &Ack) -> Result<(LeaseId, i64), Settled> {
        if let (Some(lease), Some(seq)) = (ack.lease, ack.remembered) {
            return Ok((lease, seq));
        }
        let (partition, group) = ack.place;
        if ack.foreign || !self.groups.contains(&group) {
            return Err(Settled::NotFound);
        }
        let cursor = self.cursor(ack.place);
        let lease = match (ack.lease, cursor.nonce) {
            (Some(named), Some(held)) if named != held => return Err(Settled::LeaseLost),
            (_, None) => return Err(Settled::LeaseLost),
            (_, Some(held)) => held,
        };
        let seq =
            self.logs.get(&partition).and_then(|log| log.find(&ack.transaction_id, cursor.committed, cursor.through));
        seq.map(|seq| (lease, seq)).ok_or(Settled::NotFound)
    }

    /// The first message that was not completed stops everything behind it, and the lease is
    /// charged once.
    pub(super) fn judge(&mut self, place: Place, lease: LeaseId, mut items: Vec<Item<'_>>) -> Vec<(usize, Settled)> {
        let before = self.cursor(place);
        if before.nonce != Some(lease) {
            return items.iter().map(|item| (item.at, Settled::LeaseLost)).collect();
        }
        let mut answers = self.late(place, lease, &mut items);
        if items.is_empty() {
            return answers;
        }
        let strict = strict(&items);
        let end = end(&items);
        let settled = self.settle(place, &Report { lease, end: &end, strict });
        let stop = if let End::At(seq, ..) = end { Some(seq) } else { None };
        answers.extend(items.iter().map(|item| {
            let completed = item.ack.outcome == Outcome::Completed;
            let settled = match settled {
                Settled::Done { .. } | Settled::Already if completed && item.seq <= before.committed => {
                    Settled::Already
                }
                Settled::Done { released, dead } => match stop {
                    Some(stop) if item.seq > stop && matches!(item.ack.outcome, Outcome::Completed | Outcome::Dead) => {
                        Settled::Redelivered
                    }
                    Some(stop) if item.seq == stop && completed && !dead => Settled::Redelivered,
                    _ => Settled::Done { released, dead: dead && stop == Some(item.seq) },
                },
                Settled::Already if completed && stop.is_some() => Settled::Redelivered,
                refused => refused,
            };
            (item.at, settled)
        }));
        answers
    }

    /// As all or nothing: if some come too late, the others have no answer.
    pub(super) fn judge_at_once(
        &mut self,
        place: Place,
        lease: LeaseId,
        mut items: Vec<Item<'_>>,
    ) -> Vec<(usize, Settled)> {
        let late = if self.cursor(place).nonce == Some(lease) { self.late(place, lease, &mut items) } else { vec![] };
        if late.is_empty() { self.judge(place, lease, items) } else { late }
    }

    /// Takes out the messages that the caller reports as not completed, but that are settled.
    fn late(&self, place: Place, lease: LeaseId, items: &mut Vec<Item<'_>>) -> Vec<(usize, Settled)> {
        let strict = strict(items);
        if self.is_repeat(place, &Report { lease, end: &end(items), strict }) {
            return Vec::new();
        }
        let committed = self.cursor(place).committed;
        let late = |item: &mut Item<'_>| item.ack.outcome != Outcome::Completed && item.seq <= committed;
        items.extract_if(.., late).map(|item| (item.at, Settled::Passed)).collect()
    }
}

fn strict(items: &[Item<'_>]) -> bool {
    items.iter().any(|item| item.ack.strict && item.ack.lease.is_some())
}

/// The first message that was not completed, with its worst result; else the last completed
/// message.
fn end(items: &[Item<'_>]) -> End {
    let stop = items.iter().filter(|item| item.ack.outcome != Outcome::Completed);
    let stop = stop.min_by_key(|item| (item.seq, std::cmp::Reverse(item.ack.outcome)));
    let last = items.iter().map(|item| item.seq).max().unwrap_or_default();
    stop.map_or(End::Through(last), |stop| End::At(stop.seq, stop.ack.outcome, stop.ack.error.clone()))
}
