//! The acknowledgements of a call, bundled by lease.
//!
//! Owns the bundles. A cursor can only move forward, so a bundle becomes one settlement by three
//! rules. The first message that was not completed stops everything behind it, whatever the call
//! reports of later messages. Messages before a completed one that the call does not mention are
//! completed with it. A lease is charged once for a call, however many of its messages failed. The
//! verdict on the settlement answers for every message of the bundle: [`Item::settled`].
//!
//! Next: [`super::acknowledge`], which settles the bundles.

use std::collections::HashMap;

use super::Acknowledgement;
use crate::messages::error::MessagesError;
use crate::messages::ids::LeaseId;
use crate::messages::settle::settlement::{CursorKey, End, Outcome, Settled, Settlement};
use crate::messages::settle::work::Verdict;

/// The bundles of a call.
#[derive(Debug, Default)]
pub(in crate::messages::settle) struct Bundles {
    pub(in crate::messages::settle) by_lease: HashMap<(CursorKey, LeaseId), Bundle>,
    /// The answers to acknowledgements that belong to no bundle, each with its position in the
    /// call.
    pub(in crate::messages::settle) refused: Vec<(usize, Settled)>,
}

/// All acknowledgements of one lease in a call.
#[derive(Debug)]
pub(in crate::messages::settle) struct Bundle {
    cursor: CursorKey,
    lease: LeaseId,
    strict: bool,
    /// The last sequence of the lease, if this process remembers it.
    through: Option<i64>,
    items: Vec<Item>,
}

#[derive(Debug)]
struct Item {
    /// Its position in the call.
    position: usize,
    seq: i64,
    outcome: Outcome,
    error: Option<String>,
}

/// Where the message of an acknowledgement lies, and the lease that fences its settlement.
#[derive(Debug, Clone, Copy)]
pub(super) struct LeasedMessage {
    pub(super) cursor: CursorKey,
    pub(super) lease: LeaseId,
    pub(super) seq: i64,
    /// The last sequence of the lease, if this process remembers it.
    pub(super) through: Option<i64>,
}

impl Bundles {
    pub(super) fn add(&mut self, message: LeasedMessage, position: usize, ack: Acknowledgement) {
        let LeasedMessage { cursor, lease, seq, through } = message;
        let bundle = self.by_lease.entry((cursor, lease)).or_insert_with(|| Bundle {
            cursor,
            lease,
            strict: false,
            through: None,
            items: Vec::new(),
        });
        // An ended lease counts only against an ack that names it.
        bundle.strict |= ack.strict && ack.lease.is_some();
        bundle.through = bundle.through.or(through);
        bundle.items.push(Item { position, seq, outcome: ack.outcome, error: ack.error });
    }
}

impl Bundle {
    /// The first message that was not completed, with its worst result; else the last completed
    /// message.
    pub(in crate::messages::settle) fn settlement(&self) -> Settlement {
        let stop = self.items.iter().filter(|item| item.outcome != Outcome::Completed);
        let stop = stop.min_by_key(|item| (item.seq, std::cmp::Reverse(item.outcome)));
        let last = self.items.iter().map(|item| item.seq).max().unwrap_or_default();
        let end = match stop {
            Some(stop) => End::at(stop.seq, stop.outcome, stop.error.clone()),
            None if self.through == Some(last) => End::Whole(last),
            None => End::Through(last),
        };
        Settlement { cursor: self.cursor, lease: Some(self.lease), end, strict: self.strict }
    }

    /// Whether every item is answered.
    pub(super) fn is_answered(&self) -> bool {
        self.items.is_empty()
    }

    /// Takes the items that can be answered now, each with its position in the call: after an error
    /// all of them.
    pub(super) fn answers(
        &mut self,
        verdict: Result<Verdict, MessagesError>,
    ) -> Vec<(usize, Result<Settled, MessagesError>)> {
        match verdict {
            Ok(verdict) => self.judge(verdict).into_iter().map(|(position, settled)| (position, Ok(settled))).collect(),
            Err(error) => self.items.drain(..).map(|item| (item.position, Err(error.clone()))).collect(),
        }
    }

    /// Takes the items that the verdict is about, and answers them. The others stay, to be settled
    /// again without these.
    pub(in crate::messages::settle) fn judge(&mut self, verdict: Verdict) -> Vec<(usize, Settled)> {
        let stop = match self.settlement().end {
            End::At(seq, ..) => Some(seq),
            End::Whole(_) | End::Through(_) | End::Released => None,
        };
        let before = verdict.before.unwrap_or(i64::MIN);
        if verdict.settled == Settled::Passed {
            // Late are the stop itself and what else was not completed up to where the cursor was.
            let late_to = stop.map_or(before, |stop| stop.max(before));
            let is_late = |item: &mut Item| item.outcome != Outcome::Completed && item.seq <= late_to;
            return self.items.extract_if(.., is_late).map(|item| (item.position, Settled::Passed)).collect();
        }
        let items = std::mem::take(&mut self.items);
        items.iter().map(|item| (item.position, item.settled(verdict.settled, before, stop))).collect()
    }
}

impl Item {
    /// The answer for one message: of the bundle, the first row of this table that fits.
    ///
    /// ```text
    /// the bundle   this message                                          answer
    /// -----------  ----------------------------------------------------  ---------------------
    /// done, again  completed, and the cursor was past it before          already
    /// done         completed or dead, and behind the stop                redelivered
    /// done         completed, and is the stop: reported in two ways      redelivered
    /// done         any other                                             done; dead if it is
    ///                                                                    the stop and was dead
    /// again        completed, and the bundle has a stop: the lease was   redelivered
    ///              given back by the first time
    /// other        any                                                   as the bundle
    /// ```
    ///
    /// The *stop* is the first message that was not completed; *again* is a repeat, which had no
    /// effect; `before` is where the cursor was.
    fn settled(&self, bundle: Settled, before: i64, stop: Option<i64>) -> Settled {
        let (is_stop, is_behind) = (stop == Some(self.seq), stop.is_some_and(|stop| self.seq > stop));
        match (bundle, self.outcome) {
            (Settled::Done { .. } | Settled::Already, Outcome::Completed) if self.seq <= before => Settled::Already,
            (Settled::Done { .. }, Outcome::Completed | Outcome::Dead) if is_behind => Settled::Redelivered,
            (Settled::Done { dead: false, .. }, Outcome::Completed) if is_stop => Settled::Redelivered,
            (Settled::Done { released, dead }, _) => Settled::Done { released, dead: dead && is_stop },
            (Settled::Already, Outcome::Completed) if stop.is_some() => Settled::Redelivered,
            (other, _) => other,
        }
    }
}
