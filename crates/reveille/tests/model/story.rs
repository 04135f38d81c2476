//! What may happen in a history, and how a seed becomes one.
//!
//! Steps name things by small numbers that are taken modulo what there is: whatever step is left
//! out, the others still mean something, and that is what makes a failing story short.

use fastrand::Rng;
use reveille::messages::Outcome;

use crate::model::{Begin, Rules};

pub(crate) const PARTITIONS: u8 = 4;
pub(crate) const GROUPS: u8 = 3;

#[derive(Debug, Clone)]
pub(crate) struct Story {
    pub(crate) rules: Rules,
    pub(crate) steps: Vec<Step>,
}

/// One action. `node` is the process that does it.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Push {
        node: u8,
        items: Vec<Item>,
    },
    SqlPush {
        items: Vec<Item>,
        commits: bool,
    },
    Pop {
        node: u8,
        group: u8,
        scope: Scope,
        batch: u8,
        partitions: u8,
        auto: bool,
        begin: Begin,
        remember: bool,
    },
    /// Complete a batch and pop again.
    CompleteAndPop {
        node: u8,
        which: Which,
        batch: u8,
        partitions: u8,
    },
    Settle {
        node: u8,
        which: Vec<Which>,
        how: How,
        strict: bool,
        twice: bool,
    },
    Acknowledge {
        node: u8,
        which: Vec<Which>,
        results: Vec<(u8, Outcome)>,
        named: bool,
        strict: bool,
    },
    /// Pushes and acks, all of them or nothing.
    Transaction {
        node: u8,
        items: Vec<Item>,
        settled: Vec<(Which, How)>,
        acked: Vec<(Which, u8, Outcome)>,
        named: bool,
        strict: bool,
    },
    Release {
        node: u8,
        which: Which,
    },
    Renew {
        node: u8,
        which: Which,
        strict: bool,
    },
    /// Leases end, of one place or of all.
    Expire {
        place: Option<(u8, u8)>,
    },
    RetriesAreDue,
    Seek {
        node: u8,
        group: u8,
        partition: Option<u8>,
        to: u8,
    },
    Configure {
        rules: Rules,
    },
    Pause {
        node: u8,
        on: bool,
    },
    DeleteGroup {
        node: u8,
        group: u8,
        forget: bool,
    },
    Purge {
        node: u8,
    },
    DeleteQueue {
        node: u8,
    },
    Redrive {
        node: u8,
        letters: u8,
    },
    DeleteLetters {
        node: u8,
        letters: u8,
    },
    ForgetTransactionIds,
    DeleteMessage {
        partition: u8,
        seq: u8,
    },
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Item {
    pub(crate) partition: u8,
    /// `None` for a message without a transaction id.
    pub(crate) name: Option<u8>,
}

/// What a pop reads. The namespace has another queue, which is always empty; the task has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    Queue,
    Partition(u8),
    Namespace,
    Task,
    Both,
}

/// A lease: how many batches back, and which partition of that batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Which {
    pub(crate) back: u8,
    pub(crate) part: u8,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum How {
    Complete,
    /// Counted from the first sequence of the lease; may lie outside.
    Through(u8),
    Stop(u8, Outcome),
    Release,
}

impl Story {
    /// Many short ones see more than a few long ones, but some things take long to come about.
    pub(crate) fn from_seed(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let rules = rules(&mut rng, true);
        let steps = rng.choice([4, 6, 8, 14]).expect("some");
        Self { rules, steps: (0..steps).map(|_| step(&mut rng, rules)).collect() }
    }
}

fn step(rng: &mut Rng, rules: Rules) -> Step {
    let node = rng.u8(0..2);
    match rng.u8(0..100) {
        0..22 => Step::Push { node, items: items(rng) },
        22..26 => Step::SqlPush { items: items(rng), commits: rng.u8(0..5) > 0 },
        26..30 => Step::CompleteAndPop { node, which: which(rng), batch: rng.u8(1..6), partitions: rng.u8(1..4) },
        30..55 => Step::Pop {
            node,
            group: rng.u8(0..GROUPS),
            scope: scope(rng),
            batch: rng.choice([1, 1, 2, 3, 5, 20]).expect("some"),
            partitions: rng.choice([1, 1, 2, 4]).expect("some"),
            auto: rng.u8(0..8) == 0,
            begin: if rng.bool() { Begin::All } else { Begin::New },
            remember: rng.bool(),
        },
        55..65 => {
            let how = how(rng);
            Step::Settle { node, which: whiches(rng), how, strict: rng.u8(0..4) == 0, twice: rng.u8(0..6) == 0 }
        }
        65..70 => transaction(rng, node),
        70..78 => Step::Acknowledge {
            node,
            which: whiches(rng),
            results: (0..rng.u8(1..5)).map(|_| (rng.u8(0..6), outcome(rng))).collect(),
            named: rng.u8(0..4) > 0,
            strict: rng.u8(0..4) == 0,
        },
        78..84 => operated(rng, node),
        84 => Step::Release { node, which: which(rng) },
        85 => Step::Renew { node, which: which(rng), strict: rng.bool() },
        86..89 => Step::Expire { place: rng.bool().then(|| (rng.u8(0..PARTITIONS), rng.u8(0..GROUPS))) },
        89..91 => Step::RetriesAreDue,
        91..93 => Step::Seek {
            node,
            group: rng.u8(0..GROUPS),
            partition: rng.bool().then(|| rng.u8(0..PARTITIONS)),
            to: rng.u8(0..12),
        },
        93..95 => Step::Configure { rules: Rules { remembers: rules.remembers, ..self::rules(rng, false) } },
        95..97 => Step::Redrive { node, letters: rng.u8(..) },
        97 => Step::DeleteLetters { node, letters: rng.u8(..) },
        98 => Step::ForgetTransactionIds,
        _ => Step::DeleteMessage { partition: rng.u8(0..PARTITIONS), seq: rng.u8(0..8) },
    }
}

/// Mostly what holds, so that it is committed often enough.
fn transaction(rng: &mut Rng, node: u8) -> Step {
    let settled = |rng: &mut Rng| (which(rng), if rng.bool() { How::Complete } else { how(rng) });
    let acked = |rng: &mut Rng| (which(rng), rng.u8(0..6), outcome(rng));
    Step::Transaction {
        node,
        items: items(rng),
        settled: (0..rng.u8(0..3)).map(|_| settled(rng)).collect(),
        acked: (0..rng.u8(0..3)).map(|_| acked(rng)).collect(),
        named: rng.u8(0..4) > 0,
        strict: rng.u8(0..6) == 0,
    }
}

fn operated(rng: &mut Rng, node: u8) -> Step {
    match rng.u8(0..12) {
        0..4 => Step::Pause { node, on: rng.bool() },
        4..8 => Step::DeleteGroup { node, group: rng.u8(0..GROUPS), forget: rng.bool() },
        8..10 => Step::Purge { node },
        _ => Step::DeleteQueue { node },
    }
}

fn scope(rng: &mut Rng) -> Scope {
    match rng.u8(0..12) {
        0..4 => Scope::Partition(rng.u8(0..PARTITIONS)),
        4..6 => Scope::Namespace,
        6 => Scope::Task,
        7 => Scope::Both,
        _ => Scope::Queue,
    }
}

fn rules(rng: &mut Rng, at_first: bool) -> Rules {
    Rules {
        retry_limit: rng.i32(0..3),
        max_deliveries: rng.choice([2, 3, 4, 25]).expect("some"),
        slow_retry: rng.u8(0..3) == 0,
        dead_letters: rng.u8(0..4) > 0,
        paused: !at_first && rng.u8(0..4) == 0,
        remembers: rng.u8(0..6) > 0,
    }
}

fn items(rng: &mut Rng) -> Vec<Item> {
    let item = |rng: &mut Rng| Item { partition: rng.u8(0..PARTITIONS), name: rng.bool().then(|| rng.u8(0..12)) };
    let same = rng.bool().then(|| rng.u8(0..PARTITIONS));
    let count = rng.choice([1, 1, 2, 3, 6]).expect("some");
    (0..count).map(|_| item(rng)).map(|item| Item { partition: same.unwrap_or(item.partition), ..item }).collect()
}

fn how(rng: &mut Rng) -> How {
    match rng.u8(0..10) {
        0..4 => How::Complete,
        4..6 => How::Through(rng.u8(0..4)),
        6..9 => How::Stop(rng.u8(0..4), rng.choice([Outcome::Retry, Outcome::Failed, Outcome::Dead]).expect("some")),
        _ => How::Release,
    }
}

fn outcome(rng: &mut Rng) -> Outcome {
    rng.choice([Outcome::Completed, Outcome::Completed, Outcome::Retry, Outcome::Failed, Outcome::Dead]).expect("some")
}

fn whiches(rng: &mut Rng) -> Vec<Which> {
    let count = if rng.u8(0..4) == 0 { 2 } else { 1 };
    (0..count).map(|_| which(rng)).collect()
}

/// Mostly the last lease; now and then one that was lost long ago.
fn which(rng: &mut Rng) -> Which {
    Which { back: if rng.u8(0..3) == 0 { rng.u8(0..6) } else { 0 }, part: rng.u8(0..4) }
}
