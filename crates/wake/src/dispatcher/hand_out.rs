//! From the claim round to the demands.
//!
//! Owns what becomes of a lease: to the demand it was claimed for, else to the next one it suits,
//! else given back. Promises that none is dropped.
//!
//! Next: [`crate::demand`].

use std::collections::HashSet;
use std::sync::Arc;

use super::Dispatcher;
use super::round::Flight;
use crate::demand::{Answer, DemandId};
use crate::source::{Source, WaitingDemand};

impl<S: Source> Dispatcher<S> {
    /// Everybody's own first, then what is left for those who still wait.
    pub(super) fn hand_out(
        &mut self,
        waiting: &[WaitingDemand<S::Key, S::Request>],
        leases: Vec<(DemandId, S::Lease)>,
    ) {
        let mut left = Vec::new();
        for (id, lease) in leases {
            if let Some(lease) = self.give(id, lease) {
                left.push((id, lease));
            }
        }
        for (id, lease) in left {
            let keys = waiting.iter().find(|waiting| waiting.id == id).map(|waiting| Arc::clone(&waiting.keys));
            match keys {
                Some(keys) => self.offer(&keys, lease),
                None => self.lost.push(lease),
            }
        }
    }

    /// Gives the lease back if the demand no longer waits.
    fn give(&self, id: DemandId, lease: S::Lease) -> Option<S::Lease> {
        let given = self.desk.demands().assign(id, Answer::Lease(lease));
        match given {
            Ok(waker) => {
                waker.into_iter().for_each(std::task::Waker::wake);
                None
            }
            Err(Answer::Lease(lease)) => Some(lease),
            Err(_) => None,
        }
    }

    /// A lease without a taker goes to the next demand it suits, or is given back.
    pub(super) fn offer(&mut self, keys: &[S::Key], mut lease: S::Lease) {
        let others = self.desk.demands().waiting_under(keys.iter(), self.options.max_round);
        for other in others {
            if !self.source.suits(&lease, &other.request) {
                continue;
            }
            match self.give(other.id, lease) {
                None => return,
                Some(back) => lease = back,
            }
        }
        self.lost.push(lease);
    }

    /// Answers the demands that wanted one claim round: those of the round, if it was for all their
    /// keys (a demand that came just before may have more keys than the round knew of), and those
    /// it had no room for, if the round showed that their keys have no more: a key is one question.
    /// The keys of the others are woken again by the outcome of the round.
    pub(super) fn answer_impatient(
        &self,
        flight: &Flight<S>,
        bare: &HashSet<&S::Key>,
        answer: impl Fn() -> Answer<S::Lease>,
    ) {
        let result: HashSet<&S::Key> = flight.keys.iter().map(|woken| &woken.key).collect();
        let waiting: HashSet<DemandId> = flight.waiting.iter().map(|waiting| waiting.id).collect();
        let mut demands = self.desk.demands();
        let mut wakers = Vec::new();
        for (id, keys) in demands.impatient(flight.newest) {
            let answered = if waiting.contains(&id) { &result } else { bare };
            if keys.iter().all(|key| answered.contains(key)) {
                wakers.extend(demands.assign(id, answer()).ok().flatten());
            }
        }
        drop(demands);
        wakers.into_iter().for_each(std::task::Waker::wake);
    }
}
