//! One look for every fetch that waits.
//!
//! Groups the demands that ask alike in the same way, and claims for each group at once, in one
//! statement if it can.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use reveille::service::Notifier;
use reveille_wake::{DemandId, Round, RoundFailed, RoundResult, Source};
use tracing::warn;

use super::announce;
use crate::queue::{ClaimFailed, Queue, QueueRequest};
use crate::ready::{EveryKey, QueueSource};

#[derive(Debug)]
pub(super) struct Claimer<Q: Queue> {
    pub(super) queue: Arc<Q>,
    pub(super) notifier: Arc<Notifier<QueueSource<Q::Key>>>,
}

impl<Q: Queue> Source for Claimer<Q> {
    type Key = Q::Key;
    type Request = Q::Request;
    type Lease = Q::Lease;

    async fn claim(&self, round: Round<Q::Key, Q::Request>) -> Result<RoundResult<Q::Key, Q::Lease>, RoundFailed> {
        let mut looked = RoundResult::default();
        let mut dues: HashMap<Q::Key, Duration> = HashMap::new();
        for party in parties::<Q>(&round) {
            let asked: Vec<(&Q::Key, usize)> = party.keys.iter().map(|(key, demands)| (key, demands.len())).collect();
            let claimed = match self.queue.claim(&asked, &party.ask).await {
                Ok(claimed) => claimed,
                Err(ClaimFailed { mut taken, error }) => {
                    warn!(%error, queue = Q::NAME, "could not look for work");
                    taken.extend(looked.leases.into_iter().map(|(_, lease)| lease));
                    self.release(taken).await;
                    return Err(RoundFailed);
                }
            };
            if claimed.iter().any(|claimed| !claimed.leases.is_empty()) {
                self.notifier.leased(&EveryKey, party.ask.lock());
            }
            for ((key, demands), claimed) in party.keys.into_iter().zip(claimed) {
                looked.leases.extend(demands.into_iter().zip(claimed.leases));
                if claimed.filled {
                    looked.more.push(key.clone());
                }
                if claimed.contended {
                    looked.contended.push(key.clone());
                }
                if let Some(due) = claimed.due {
                    let soonest = dues.entry(key).or_insert(due);
                    *soonest = due.min(*soonest);
                }
            }
        }
        looked.dues = dues.into_iter().collect();
        Ok(looked)
    }

    async fn release(&self, leases: Vec<Q::Lease>) {
        if !leases.is_empty() {
            self.queue.give_back(leases).await;
            announce(&self.notifier);
        }
    }
}

/// Demands that one claim can serve.
struct Party<Q: Queue> {
    ask: Q::Request,
    /// Who waits under which key; the key that has waited longest first.
    keys: Vec<(Q::Key, Vec<DemandId>)>,
}

fn parties<Q: Queue>(round: &Round<Q::Key, Q::Request>) -> Vec<Party<Q>> {
    let mut parties: Vec<Party<Q>> = Vec::new();
    for asked in &round.waiting {
        let (key, ask) = (&asked.keys[0], &*asked.request);
        let fits = |party: &&mut Party<Q>| party.ask == *ask && Q::alike(&party.keys[0].0, key);
        let Some(party) = parties.iter_mut().find(fits) else {
            parties.push(Party { ask: ask.clone(), keys: vec![(key.clone(), vec![asked.id])] });
            continue;
        };
        match party.keys.iter_mut().find(|(there, _)| there == key) {
            Some((_, demands)) => demands.push(asked.id),
            None => party.keys.push((key.clone(), vec![asked.id])),
        }
    }
    parties
}
