//! A history, sorted by message, group and place.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::Counted;
use crate::clock::Micros;
use crate::history::{Edge, Event, Key, Keys, Outcome, Phase, Place, Promise, Record, Status};

/// A consumer group of a queue, by its place in [`Ledger::groups`].
pub(super) type GroupId = u16;

#[derive(Debug)]
pub(super) struct Group<'h> {
    pub(super) queue: &'h str,
    pub(super) name: &'h str,
    pub(super) promise: Promise,
    pub(super) lease: Micros,
}

/// A message as its producers saw it.
#[derive(Debug)]
pub(super) struct Message<'h> {
    pub(super) place: &'h Place,
    /// When its first push began.
    pub(super) began: Micros,
    /// When its storage was first answered.
    pub(super) ok: Option<Micros>,
    intents: u32,
    refusals: u32,
    unknowns: u32,
}

impl Message<'_> {
    /// Every attempt to store it was certainly refused or rolled back.
    pub(super) fn cannot_exist(&self) -> bool {
        self.ok.is_none() && self.refusals >= self.intents
    }
}

#[derive(Debug)]
pub(super) struct Delivery<'h> {
    pub(super) at: Micros,
    pub(super) began: Micros,
    pub(super) place: &'h Place,
    pub(super) group: GroupId,
    pub(super) lease: &'h str,
    pub(super) keys: &'h Keys,
}

#[derive(Debug)]
pub(super) struct Settlement<'h> {
    pub(super) began: Micros,
    /// When it was answered; never, if it was not.
    pub(super) at: Micros,
    pub(super) place: &'h Place,
    pub(super) group: GroupId,
    pub(super) lease: &'h str,
    pub(super) keys: &'h Keys,
    pub(super) status: Status,
    pub(super) outcome: Outcome,
}

/// A group that was moved back, between these times.
#[derive(Debug)]
pub(super) struct Seek {
    pub(super) group: GroupId,
    pub(super) began: Micros,
    pub(super) at: Micros,
    pub(super) outcome: Outcome,
}

/// Everything, indexed.
#[derive(Debug, Default)]
pub(super) struct Ledger<'h> {
    pub(super) groups: Vec<Group<'h>>,
    ids: HashMap<(&'h str, &'h str), GroupId>,
    pub(super) messages: HashMap<Key, Message<'h>>,
    pub(super) deliveries: Vec<Delivery<'h>>,
    pub(super) settlements: Vec<Settlement<'h>>,
    pub(super) seeks: Vec<Seek>,
    pub(super) buried: HashSet<(GroupId, Key)>,
    pub(super) effects: Vec<(&'h str, Key, u32)>,
    /// Places of groups with something in them at the end.
    pub(super) pending: HashSet<(GroupId, &'h Place)>,
    /// From when to when PostgreSQL was being killed: claims may be forgotten then, as no claim
    /// waits for the disk.
    pub(super) crashes: Vec<(Micros, Micros)>,
    pub(super) calm_from: Option<Micros>,
    faults: BTreeMap<String, u64>,
    /// (group, key, delivery) and (group, key, settlement), sorted.
    seen: Vec<(GroupId, Key, u32)>,
    settled: Vec<(GroupId, Key, u32)>,
}

/// Settlements that wait for their answers, by writer and number.
type Open<'h> = HashMap<(u32, u64), (Settlement<'h>, usize)>;

impl<'h> Ledger<'h> {
    pub(super) fn read(history: &'h [Record]) -> Self {
        let mut ledger = Self::default();
        // First, so that everything else finds its group whatever the order of times.
        for record in history {
            if let Event::Group { queue, group, promise, lease } = &record.event {
                ledger.declare(Group { queue, name: group, promise: *promise, lease: *lease });
            }
        }
        let mut open = Open::new();
        for record in history {
            ledger.take(record, &mut open);
        }
        // A settlement without an answer for all of its messages is unknown for each of them.
        for (settlement, answered) in open.into_values() {
            if answered < settlement.keys.len() {
                ledger.settlements.push(settlement);
            }
        }
        ledger.index();
        ledger
    }

    fn declare(&mut self, group: Group<'h>) {
        let id = GroupId::try_from(self.groups.len()).unwrap_or(GroupId::MAX);
        self.ids.insert((group.queue, group.name), id);
        self.groups.push(group);
    }

    pub(super) fn id(&self, queue: &str, group: &str) -> Option<GroupId> {
        self.ids.get(&(queue, group)).copied()
    }

    pub(super) fn group(&self, id: GroupId) -> &Group<'h> {
        &self.groups[usize::from(id)]
    }

    fn take(&mut self, record: &'h Record, open: &mut Open<'h>) {
        let Record { at, by, event } = record;
        match event {
            Event::Push { place, keys, .. } => self.pushing(*at, place, keys),
            Event::Pushed { keys, outcome, .. } => self.pushed(*at, keys, *outcome),
            Event::Delivered { began, place, group, lease, keys, .. } => {
                if let Some(group) = self.id(&place.queue, group) {
                    self.deliveries.push(Delivery { at: *at, began: *began, place, group, lease, keys });
                }
            }
            Event::Settle { op, place, group, lease, keys, status } => {
                if let Some(group) = self.id(&place.queue, group) {
                    let (status, outcome) = (*status, Outcome::Unknown);
                    let begun = Settlement { began: *at, at: Micros::MAX, place, group, lease, keys, status, outcome };
                    open.insert((*by, *op), (begun, 0));
                }
            }
            Event::Settled { op, keys, outcome } => {
                if let Some((begun, answered)) = open.get_mut(&(*by, *op)) {
                    *answered += keys.len();
                    self.settlements.push(Settlement { at: *at, keys, outcome: *outcome, ..*begun });
                }
            }
            Event::Sought { began, queue, group, outcome } => {
                if let Some(group) = self.id(queue, group) {
                    self.seeks.push(Seek { group, began: *began, at: *at, outcome: *outcome });
                }
            }
            Event::Left { place, group, pending, .. } if *pending > 0 => {
                if let Some(group) = self.id(&place.queue, group) {
                    self.pending.insert((group, place));
                }
            }
            Event::Buried { queue, group, key } => {
                if let Some(group) = self.id(queue, group) {
                    self.buried.insert((group, *key));
                }
            }
            Event::Effect { queue, key, times } => self.effects.push((queue, *key, *times)),
            Event::Fault { kind, edge: Edge::Begin, .. } => {
                *self.faults.entry(kind.clone()).or_default() += 1;
                if CRASHES.contains(&kind.as_str()) {
                    self.crashes.push((*at, Micros::MAX));
                }
            }
            Event::Fault { kind, edge: Edge::End, .. } => {
                let open = self.crashes.iter_mut().rev().find(|(_, end)| *end == Micros::MAX);
                if let Some((_, end)) = open.filter(|_| CRASHES.contains(&kind.as_str())) {
                    *end = *at;
                }
            }
            Event::Phase { phase: Phase::Calm } => self.calm_from = Some(*at),
            Event::Group { .. } | Event::Left { .. } | Event::Phase { .. } | Event::Counted { .. } => {}
        }
    }

    fn pushing(&mut self, at: Micros, place: &'h Place, keys: &Keys) {
        for key in keys.iter() {
            let new = Message { place, began: at, ok: None, intents: 0, refusals: 0, unknowns: 0 };
            self.messages.entry(key).or_insert(new).intents += 1;
        }
    }

    fn pushed(&mut self, at: Micros, keys: &Keys, outcome: Outcome) {
        for key in keys.iter() {
            let Some(message) = self.messages.get_mut(&key) else { continue };
            match outcome {
                Outcome::Ok | Outcome::Again => message.ok = Some(message.ok.map_or(at, |before| before.min(at))),
                Outcome::Refused => message.refusals += 1,
                Outcome::Unknown => message.unknowns += 1,
            }
        }
    }

    fn index(&mut self) {
        self.settlements.sort_by_key(|settlement| settlement.began);
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        for (n, delivery) in self.deliveries.iter().enumerate() {
            self.seen.extend(delivery.keys.iter().map(|key| (delivery.group, key, number(n))));
        }
        for (n, settlement) in self.settlements.iter().enumerate() {
            self.settled.extend(settlement.keys.iter().map(|key| (settlement.group, key, number(n))));
        }
        self.seen.sort_unstable();
        self.settled.sort_unstable();
    }

    /// The deliveries of a message to a group, in the order in which they were recorded.
    pub(super) fn deliveries_of(&self, group: GroupId, key: Key) -> impl Iterator<Item = &Delivery<'h>> {
        range(&self.seen, group, key).iter().map(|&(_, _, n)| &self.deliveries[n as usize])
    }

    /// A group's settlements of a message, in the order in which they began.
    pub(super) fn settlements_of(&self, group: GroupId, key: Key) -> impl Iterator<Item = &Settlement<'h>> {
        range(&self.settled, group, key).iter().map(|&(_, _, n)| &self.settlements[n as usize])
    }

    /// Every (group, message) that was delivered, once.
    pub(super) fn delivered(&self) -> impl Iterator<Item = (GroupId, Key)> {
        self.seen.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)).map(|same| (same[0].0, same[0].1))
    }

    /// Whether the group may have been moved back between these times.
    pub(super) fn sought(&self, group: GroupId, from: Micros, to: Micros) -> bool {
        self.seeks.iter().any(|seek| {
            let end = if seek.outcome == Outcome::Unknown { Micros::MAX } else { seek.at };
            seek.group == group && seek.began <= to && end >= from
        })
    }

    pub(super) fn counted(&self) -> Counted {
        let mut counted = Counted { faults: self.faults.clone(), ..Counted::default() };
        for message in self.messages.values() {
            counted.pushed += u64::from(message.ok.is_some());
            counted.push_unknown += u64::from(message.ok.is_none() && !message.cannot_exist());
        }
        counted.delivered = self.deliveries.iter().map(|delivery| delivery.keys.len() as u64).sum();
        for settlement in self.settlements.iter().filter(|it| it.status == Status::Completed) {
            let many = settlement.keys.len() as u64;
            match settlement.outcome {
                Outcome::Ok => counted.acked += many,
                Outcome::Again => {}
                Outcome::Refused => counted.ack_refused += many,
                Outcome::Unknown => counted.ack_unknown += many,
            }
        }
        counted.effects = self.effects.iter().map(|&(_, _, times)| u64::from(times)).sum();
        counted
    }
}

/// The kinds of faults after which a claim may be forgotten: PostgreSQL ends without writing it to
/// disk.
const CRASHES: [&str; 3] = ["kill-postmaster", "disk-full", "promotion"];

fn range(sorted: &[(GroupId, Key, u32)], group: GroupId, key: Key) -> &[(GroupId, Key, u32)] {
    let from = sorted.partition_point(|it| (it.0, it.1) < (group, key));
    let to = from + sorted[from..].partition_point(|it| (it.0, it.1) == (group, key));
    &sorted[from..to]
}
