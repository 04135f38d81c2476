//! One claim round for every fetch that waits.
//!
//! `Claimer` is the source that the dispatcher claims from. It exists to serve many demands with
//! few statements: demands with equal requests and alike keys form a group, and each group is one
//! claim, in one statement if the queue can do that.

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
        let mut result = RoundResult::default();
        let mut dues: HashMap<Q::Key, Duration> = HashMap::new();
        for group in groups::<Q>(&round) {
            let wanted: Vec<(&Q::Key, usize)> = group.keys.iter().map(|(key, demands)| (key, demands.len())).collect();
            let claimed = match self.queue.claim(&wanted, &group.request).await {
                Ok(claimed) => claimed,
                Err(ClaimFailed { mut taken, error }) => {
                    warn!(%error, queue = Q::NAME, "could not claim work");
                    taken.extend(result.leases.into_iter().map(|(_, lease)| lease));
                    self.release(taken).await;
                    return Err(RoundFailed);
                }
            };
            if claimed.iter().any(|claimed| !claimed.leases.is_empty()) {
                self.notifier.leased(&EveryKey, group.request.lock());
            }
            for ((key, demands), claimed) in group.keys.into_iter().zip(claimed) {
                result.leases.extend(demands.into_iter().zip(claimed.leases));
                if claimed.filled {
                    result.more.push(key.clone());
                }
                if claimed.contended {
                    result.contended.push(key.clone());
                }
                if let Some(due) = claimed.due {
                    let soonest = dues.entry(key).or_insert(due);
                    *soonest = due.min(*soonest);
                }
            }
        }
        result.dues = dues.into_iter().collect();
        Ok(result)
    }

    async fn release(&self, leases: Vec<Q::Lease>) {
        if !leases.is_empty() {
            self.queue.give_back(leases).await;
            announce(&self.notifier);
        }
    }
}

/// Demands that one claim can serve.
struct Group<Q: Queue> {
    request: Q::Request,
    /// The demands under each key; the key that has waited longest first.
    keys: Vec<(Q::Key, Vec<DemandId>)>,
}

fn groups<Q: Queue>(round: &Round<Q::Key, Q::Request>) -> Vec<Group<Q>> {
    let mut groups: Vec<Group<Q>> = Vec::new();
    for demand in &round.demands {
        let (key, request) = (&demand.keys[0], &*demand.request);
        let fits = |group: &&mut Group<Q>| group.request == *request && Q::alike(&group.keys[0].0, key);
        let Some(group) = groups.iter_mut().find(fits) else {
            groups.push(Group { request: request.clone(), keys: vec![(key.clone(), vec![demand.id])] });
            continue;
        };
        match group.keys.iter_mut().find(|(there, _)| there == key) {
            Some((_, demands)) => demands.push(demand.id),
            None => group.keys.push((key.clone(), vec![demand.id])),
        }
    }
    groups
}
