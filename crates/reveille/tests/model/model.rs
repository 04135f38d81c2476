//! What must be true: queues of one history, in memory, without concurrency, leases as flags and
//! time as a word.
//!
//! Owns the rules. Promises an exact answer wherever the database has no choice; where it has one
//! (which due partition a pop gets), it says whether the choice was allowed and then goes on from
//! there.

mod acks;
mod cursor;
mod log;
mod operate;
mod pop;
mod together;

use std::collections::BTreeMap;

use reveille::messages::{LeaseId, MessageId, Settled};

pub(crate) use acks::Ack;
pub(crate) use cursor::{Cursor, End, Lease};
pub(crate) use log::{Log, Pushing, Sent, Stored};
pub(crate) use pop::{Given, Request, Share};
pub(crate) use together::{Settling, Together, TogetherEnd};

use cursor::Burial;
pub(crate) use cursor::Report;

/// A partition and a group, by number.
pub(crate) type Place = (u8, u8);

/// The number of a group that was deleted for good: what was for it alone is for nobody now.
pub(crate) const GONE: u8 = u8::MAX;

/// What did not agree, in words.
pub(crate) type Check<T = ()> = Result<T, String>;

/// What a queue's options say.
#[expect(clippy::struct_excessive_bools, reason = "a queue's options are what they are")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rules {
    pub(crate) retry_limit: i32,
    pub(crate) max_deliveries: i32,
    /// A failed message waits; time passes only when a history says so.
    pub(crate) slow_retry: bool,
    pub(crate) dead_letters: bool,
    pub(crate) paused: bool,
    /// Whether transaction ids are remembered; never changes in the life of a queue.
    pub(crate) remembers: bool,
}

impl Rules {
    /// Of a queue that was made by a push.
    pub(crate) const AT_FIRST: Self = Self {
        retry_limit: 3,
        max_deliveries: 25,
        slow_retry: false,
        dead_letters: true,
        paused: false,
        remembers: true,
    };
}

/// Where a group begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begin {
    All,
    New,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Letter {
    pub(crate) place: Place,
    pub(crate) seq: i64,
    pub(crate) message: MessageId,
    pub(crate) failures: i32,
    pub(crate) deliveries: i32,
    pub(crate) error: Option<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct Model {
    pub(crate) rules: Rules,
    /// Whether the queue is there.
    pub(crate) present: bool,
    pub(crate) logs: BTreeMap<u8, Log>,
    pub(crate) groups: Vec<u8>,
    /// Where groups began, unless at the beginning.
    began: BTreeMap<Place, i64>,
    pub(crate) cursors: BTreeMap<Place, Cursor>,
    /// By the number the database gave them, as far as it has been read.
    pub(crate) letters: Vec<Letter>,
    /// Pushed by foreign transactions, and not in a log yet; the oldest first.
    pub(crate) outbox: Vec<(u8, Sent)>,
    /// The last pop moved cursors past what it gave to nobody.
    passed_some: bool,
}

impl Model {
    pub(crate) fn new(rules: Rules) -> Self {
        Self {
            rules,
            present: true,
            logs: BTreeMap::new(),
            groups: Vec::new(),
            began: BTreeMap::new(),
            cursors: BTreeMap::new(),
            letters: Vec::new(),
            outbox: Vec::new(),
            passed_some: false,
        }
    }

    /// The first pop of a group decides where it begins.
    pub(crate) fn register(&mut self, group: u8, begin: Begin) {
        if !self.present || self.groups.contains(&group) {
            return;
        }
        self.groups.push(group);
        for (partition, log) in &self.logs {
            let place = (*partition, group);
            let began = if begin == Begin::New && group != 0 { log.newest() } else { 0 };
            self.began.insert(place, began);
            self.cursors.insert(place, Cursor { committed: began.max(log.purged), ..Cursor::default() });
        }
    }

    pub(crate) fn cursor(&self, place: Place) -> Cursor {
        self.cursors.get(&place).cloned().unwrap_or_default()
    }

    pub(crate) fn newest(&self, partition: u8) -> i64 {
        self.logs.get(&partition).map_or(0, Log::newest)
    }

    /// The last sequence that was purged.
    pub(crate) fn purged(&self, partition: u8) -> i64 {
        self.logs.get(&partition).map_or(0, |log| log.purged)
    }

    /// A push makes the queue if it is not there.
    pub(crate) fn make(&mut self) {
        if !self.present {
            (self.present, self.rules) = (true, Rules::AT_FIRST);
        }
    }

    /// What foreign transactions pushed to a partition comes into its log, all of it or the oldest
    /// `most`.
    pub(crate) fn receive(&mut self, partition: u8, most: usize) {
        let remembers = self.rules.remembers;
        let log = self.logs.entry(partition).or_default();
        let mut left = most;
        self.outbox.retain(|(to, sent)| {
            let mine = *to == partition && left > 0;
            if mine {
                left -= 1;
                log.receive(sent, remembers);
            }
            !mine
        });
    }

    /// A settlement by lease; the cursor is where that lease was taken.
    pub(crate) fn settle(&mut self, place: Place, report: &Report<'_>) -> Settled {
        let rules = self.rules;
        if self.is_repeat(place, report) {
            return Settled::Already;
        }
        let Some(cursor) = self.cursors.get_mut(&place) else { return Settled::LeaseLost };
        let (settled, burial) = cursor.settle(report, &rules);
        if let Some(burial) = burial {
            self.bury(place, burial);
        }
        settled
    }

    fn is_repeat(&self, place: Place, report: &Report<'_>) -> bool {
        let cursor = self.cursor(place);
        let buried = self.letters.iter().any(|letter| letter.place == place && letter.seq == cursor.committed);
        cursor.is_repeat(report, buried)
    }

    /// What was deleted, or is somebody else's, has no letter.
    fn bury(&mut self, place: Place, burial: Burial) {
        let (partition, group) = place;
        let Burial { seq, failures, deliveries, error } = burial;
        let held = self.logs.get(&partition).and_then(|log| log.held(seq, group));
        if let Some(held) = held {
            self.letters.push(Letter { place, seq, message: held.id, failures, deliveries, error });
        }
    }

    /// Every lease of the place ends, if there is one.
    pub(crate) fn expire(&mut self, place: Place) {
        if let Some(lease) = self.cursors.get_mut(&place).and_then(|cursor| cursor.lease.as_mut()) {
            lease.ended = true;
        }
    }

    /// Retry delays are over.
    pub(crate) fn wait_out_retries(&mut self) {
        self.cursors.values_mut().for_each(|cursor| cursor.later = false);
    }

    /// Everything up to `seq` counts as settled; leases there are lost, by a nonce that nobody was
    /// given.
    pub(crate) fn seek(&mut self, place: Place, seq: i64, nonce: Option<LeaseId>) {
        let committed = seq.clamp(self.purged(place.0), self.newest(place.0));
        let through = self.cursor(place).through;
        self.cursors.insert(place, Cursor { committed, nonce, through, ..Cursor::default() });
    }

    /// Dead letters go back to the end of their partitions, each for its own group. A run of one
    /// group stays together, and runs go by their oldest letter. Letters of a group that is gone
    /// stay. Says how many went.
    pub(crate) fn redrive(&mut self, chosen: &[usize]) -> u64 {
        let chosen: Vec<usize> = chosen.iter().copied().filter(|at| self.letters[*at].place.1 != GONE).collect();
        let mut runs: BTreeMap<Place, Vec<Letter>> = BTreeMap::new();
        let mut order: Vec<Place> = Vec::new();
        for at in &chosen {
            let letter = self.letters[*at].clone();
            if !order.contains(&letter.place) {
                order.push(letter.place);
            }
            runs.entry(letter.place).or_default().push(letter);
        }
        for place in order {
            let log = self.logs.entry(place.0).or_default();
            for letter in runs.remove(&place).unwrap_or_default() {
                log.again(letter.seq, place.1);
            }
        }
        self.delete_letters(&chosen);
        chosen.len() as u64
    }

    pub(crate) fn delete_letters(&mut self, chosen: &[usize]) {
        let mut at = 0;
        self.letters.retain(|_| {
            at += 1;
            !chosen.contains(&(at - 1))
        });
    }
}
