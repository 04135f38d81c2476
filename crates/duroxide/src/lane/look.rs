//! One look for every fetch that waits.
//!
//! Groups the demands that ask the same question in the same way, and claims for each group in one statement.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use reveille_wake::{DemandId, LookFailed, Looked, Round, Source};
use tracing::warn;

use crate::bell::Bell;
use crate::queue::{Queue, QueueAsk};

#[derive(Debug)]
pub(super) struct Looker<Q: Queue> {
    pub(super) queue: Arc<Q>,
    pub(super) bell: Arc<Bell<Q::Key>>,
}

impl<Q: Queue> Source for Looker<Q> {
    type Key = Q::Key;
    type Ask = Q::Ask;
    type Lease = Q::Lease;

    async fn look(&self, round: Round<Q::Key, Q::Ask>) -> Result<Looked<Q::Key, Q::Lease>, LookFailed> {
        let mut groups: Vec<(Q::Key, Q::Ask, Vec<DemandId>)> = Vec::new();
        let mut places: HashMap<(Q::Key, Q::Ask), usize> = HashMap::new();
        for asked in &round.asked {
            let (key, ask) = (asked.keys[0].clone(), (*asked.ask).clone());
            let place = *places.entry((key.clone(), ask.clone())).or_insert_with(|| {
                groups.push((key, ask, Vec::new()));
                groups.len() - 1
            });
            groups[place].2.push(asked.id);
        }
        let mut looked = Looked::default();
        let mut dues: HashMap<Q::Key, Duration> = HashMap::new();
        for (key, ask, demands) in groups {
            let claimed = match self.queue.claim(&key, &ask, demands.len()).await {
                Ok(claimed) => claimed,
                Err(error) => {
                    warn!(%error, queue = Q::NAME, "could not look for work");
                    self.release(looked.leases.into_iter().map(|(_, lease)| lease).collect()).await;
                    return Err(LookFailed);
                }
            };
            if !claimed.leases.is_empty() {
                self.bell.leased(ask.lock());
            }
            looked.leases.extend(demands.into_iter().zip(claimed.leases));
            if claimed.filled {
                looked.more.push(key.clone());
            }
            if let Some(due) = claimed.due {
                let soonest = dues.entry(key).or_insert(due);
                *soonest = due.min(*soonest);
            }
        }
        looked.dues = dues.into_iter().collect();
        Ok(looked)
    }

    async fn release(&self, leases: Vec<Q::Lease>) {
        if !leases.is_empty() {
            self.queue.give_back(leases).await;
            self.bell.ring(reveille_wake::Cause::Released);
        }
    }
}
