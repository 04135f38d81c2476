//! Whether what a pop brought was allowed, and where the cursors are then.

use std::collections::BTreeMap;

use reveille::messages::LeaseId;

use super::cursor::Burial;
use super::{Check, Cursor, Lease, Model, Place, Stored};
use crate::snapshot::Rows;

#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) group: u8,
    pub(crate) partition: Option<u8>,
    pub(crate) batch: i64,
    pub(crate) partitions: usize,
    pub(crate) auto: bool,
}

/// What came.
#[derive(Debug, Clone)]
pub(crate) struct Given {
    pub(crate) lease: Option<LeaseId>,
    pub(crate) shares: Vec<Share>,
}

#[derive(Debug, Clone)]
pub(crate) struct Share {
    pub(crate) partition: u8,
    pub(crate) deliveries: i32,
    pub(crate) messages: Vec<(i64, Stored)>,
}

/// What one partition gave, of what it could have given.
struct Took {
    take: i64,
    all: bool,
    /// Deleted messages lay among it: then the count is the database's business.
    ragged: bool,
}

impl Model {
    /// `rows` are the cursors after the pop, `newest` what was in the logs before it.
    pub(crate) fn pop(
        &mut self,
        request: &Request,
        given: Option<&Given>,
        rows: &Rows,
        newest: &BTreeMap<u8, i64>,
    ) -> Check {
        let partitions: Vec<u8> = self.logs.keys().copied().collect();
        let scope = partitions.into_iter().filter(|p| request.partition.is_none_or(|only| only == *p));
        let mut took = Vec::new();
        self.passed_some = false;
        for partition in scope.clone() {
            let share = given.and_then(|given| given.shares.iter().find(|share| share.partition == partition));
            let before = newest.get(&partition).copied().unwrap_or_default();
            let got = share.map(|share| (share, given.and_then(|given| given.lease)));
            took.extend(self.claimed(request, (partition, before), got, rows)?);
        }
        match given {
            Some(given) if given.shares.len() != took.len() => Err("it brought partitions nobody asked for".to_owned()),
            Some(_) => limits(request, &took, self.passed_some),
            None => self.nothing_is_left(request, scope),
        }
    }

    fn nothing_is_left(&self, request: &Request, scope: impl Iterator<Item = u8>) -> Check {
        for partition in scope {
            let cursor = self.cursor((partition, request.group));
            if self.is_claimable(partition, &cursor) {
                return Err(format!("it brought nothing, though p{partition} has messages after {}", cursor.committed));
            }
        }
        Ok(())
    }

    /// Whether a claim may take something here now.
    fn is_claimable(&self, partition: u8, cursor: &Cursor) -> bool {
        let passed = cursor.committed.max(self.purged(partition));
        cursor.is_free() && !self.rules.paused && self.newest(partition) > passed
    }

    fn claimed(
        &mut self,
        request: &Request,
        (partition, before): (u8, i64),
        got: Option<(&Share, Option<LeaseId>)>,
        rows: &Rows,
    ) -> Check<Option<Took>> {
        let place = (partition, request.group);
        let row = rows.get(&place).cloned().unwrap_or_default();
        let cursor = self.cursor(place);
        if got.is_none() && row.committed == cursor.committed {
            return Ok(None);
        }
        // Every pop passes purged messages, even if it gets nothing.
        let passes = got.is_none() && cursor.is_free() && row.committed == self.purged(partition);
        if !passes && !self.is_claimable(partition, &cursor) {
            return Err(format!("p{partition} was given or moved, and is not claimable: {cursor:?}"));
        }
        match got {
            None => {
                self.pass(place, row.committed)?;
                let cursor = self.cursors.entry(place).or_default();
                (cursor.nonce, cursor.through) = (row.nonce, row.through);
                Ok(None)
            }
            Some((share, _)) if request.auto => self.acked_by_pop(place, share, &row, before).map(Some),
            Some((share, lease)) => {
                self.pass(place, row.committed)?;
                self.leased(place, share, lease, (row.through, before)).map(Some)
            }
        }
    }

    /// The cursor went on by itself: past a message that was claimed too often, or past what the
    /// group cannot see.
    fn pass(&mut self, place: Place, committed: i64) -> Check {
        loop {
            let cursor = self.cursor(place);
            if cursor.committed == committed {
                return Ok(());
            }
            if cursor.committed > committed {
                return Err(format!("the cursor of {place:?} went back to {committed}: {cursor:?}"));
            }
            let next = cursor.committed + 1;
            if next <= self.purged(place.0) {
                // It is gone for everybody.
            } else if cursor.is_poisoned(&self.rules) {
                self.bury_poison(place, &cursor);
            } else if self.logs[&place.0].visible(next, place.1).is_some() {
                return Err(format!("the cursor of {place:?} passed {next}, which nobody got: {cursor:?}"));
            }
            self.passed_some = true;
            self.cursors.entry(place).or_default().pass();
        }
    }

    fn bury_poison(&mut self, place: Place, cursor: &Cursor) {
        if self.rules.dead_letters {
            let error = format!("claimed {} times without an answer", cursor.deliveries);
            let Cursor { committed, failures, deliveries, .. } = *cursor;
            self.bury(place, Burial { seq: committed + 1, failures, deliveries, error: Some(error) });
        }
    }

    fn leased(
        &mut self,
        place: Place,
        share: &Share,
        lease: Option<LeaseId>,
        (through, before): (i64, i64),
    ) -> Check<Took> {
        let mut cursor = self.cursor(place);
        if cursor.is_poisoned(&self.rules) {
            return Err(format!("{place:?} was given, though its next message was claimed too often: {cursor:?}"));
        }
        let took = self.took(place, &cursor, through, before)?;
        self.expect_messages(place, (cursor.committed, through), share)?;
        cursor.deliveries += 1;
        if share.deliveries != cursor.deliveries {
            return Err(format!(
                "{place:?} was reported as claimed {} times, not {}",
                share.deliveries, cursor.deliveries
            ));
        }
        (cursor.nonce, cursor.through, cursor.lease) = (lease, through, Some(Lease { ended: false }));
        self.cursors.insert(place, cursor);
        Ok(took)
    }

    fn acked_by_pop(&mut self, place: Place, share: &Share, row: &crate::snapshot::Row, before: i64) -> Check<Took> {
        self.pass(place, self.cursor(place).committed.max(self.purged(place.0)))?;
        if self.cursor(place).is_poisoned(&self.rules) {
            let next = self.cursor(place).committed + 1;
            self.pass(place, next)?;
        }
        let mut cursor = self.cursor(place);
        let took = self.took(place, &cursor, row.committed, before)?;
        self.expect_messages(place, (cursor.committed, row.committed), share)?;
        cursor = Cursor { committed: row.committed, nonce: row.nonce, through: row.through, ..Cursor::default() };
        self.cursors.insert(place, cursor);
        Ok(took)
    }

    fn took(&self, place: Place, cursor: &Cursor, through: i64, before: i64) -> Check<Took> {
        let log = &self.logs[&place.0];
        let take = through - cursor.committed;
        let ragged = (cursor.committed + 1..=through).any(|seq| log.visible(seq, place.1).is_none());
        let there = cursor.offers(log.newest());
        if !(1..=there).contains(&take) && !ragged {
            return Err(format!("{place:?} gave {take} of {there} messages: {cursor:?}"));
        }
        // What foreign transactions sent may have come into the log before the claim or after it.
        Ok(Took { take, all: take == there || take == cursor.offers(before), ragged })
    }

    fn expect_messages(&self, place: Place, (start, through): (i64, i64), share: &Share) -> Check {
        let log = &self.logs[&place.0];
        let expected: Vec<(i64, Stored)> = (start + 1..=through)
            .filter_map(|seq| log.visible(seq, place.1).map(|held| (seq, Stored { only: None, ..held.clone() })))
            .collect();
        if expected == share.messages {
            return Ok(());
        }
        Err(format!("{place:?} brought {:?}, not {expected:?}", share.messages))
    }
}

/// A batch is filled partition by partition: only the last one may be cut. What was passed on the
/// way had its share.
fn limits(request: &Request, took: &[Took], passed_some: bool) -> Check {
    let sum: i64 = took.iter().map(|took| took.take).sum();
    if took.is_empty() || took.len() > request.partitions {
        return Err(format!("it brought {} partitions of at most {}", took.len(), request.partitions));
    }
    if took.iter().any(|took| took.ragged) {
        return Ok(());
    }
    let cut = took.iter().filter(|took| !took.all).count();
    if sum > request.batch || (!passed_some && (cut > 1 || (cut == 1 && sum < request.batch))) {
        return Err(format!("it brought {sum} of at most {} messages, and cut {cut} partitions short", request.batch));
    }
    Ok(())
}
