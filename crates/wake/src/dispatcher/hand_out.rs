//! From the claim round to the demands.
//!
//! Owns what becomes of a lease: it goes to the demand it was claimed for, else to another one that
//! it suits, else it is given back. Promises that no lease is dropped.
//!
//! Next: [`crate::demand`].

use std::collections::HashSet;
use std::sync::Arc;

use super::Dispatcher;
use super::round::Flight;
use crate::demand::{Answer, DemandId};
use crate::source::{Source, WaitingDemand};

impl<S: Source> Dispatcher<S> {
    /// First each lease to its own demand, then the leases that are left to demands that still
    /// wait.
    pub(super) fn hand_out(
        &mut self,
        demands: &[WaitingDemand<S::Key, S::Request>],
        leases: Vec<(DemandId, S::Lease)>,
    ) {
        let mut left = Vec::new();
        for (id, lease) in leases {
            if let Some(lease) = self.give(id, lease) {
                left.push((id, lease));
            }
        }
        for (id, lease) in left {
            let keys = demands.iter().find(|demand| demand.id == id).map(|demand| Arc::clone(&demand.keys));
            match keys {
                Some(keys) => self.offer(&keys, lease),
                None => self.lost.push(lease),
            }
        }
    }

    /// Returns the lease if the demand no longer waits.
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

    /// A lease whose demand has gone goes to the next one it suits, or is given back.
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

    /// Answers the demands that wait for one claim round only. Those of the round, if it claimed
    /// from all their keys: a demand that came just before may have more keys than the round. And
    /// those the round had no room for, if it showed that their keys are exhausted. The outcome of
    /// the round wakes the keys of the others again.
    pub(super) fn answer_impatient(
        &self,
        flight: &Flight<S>,
        exhausted: &HashSet<&S::Key>,
        answer: impl Fn() -> Answer<S::Lease>,
    ) {
        let claimed: HashSet<&S::Key> = flight.keys.iter().map(|woken| &woken.key).collect();
        let in_round: HashSet<DemandId> = flight.demands.iter().map(|demand| demand.id).collect();
        let mut demands = self.desk.demands();
        let mut wakers = Vec::new();
        for (id, keys) in demands.impatient(flight.newest) {
            let answered = if in_round.contains(&id) { &claimed } else { exhausted };
            if keys.iter().all(|key| answered.contains(key)) {
                wakers.extend(demands.assign(id, answer()).ok().flatten());
            }
        }
        drop(demands);
        wakers.into_iter().for_each(std::task::Waker::wake);
    }
}
