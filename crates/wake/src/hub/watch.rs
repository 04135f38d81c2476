//! Waiting for many keys at once.
//!
//! Owns one waiter per key and a list of the woken ones, so that a dispatcher with a thousand keys
//! wakes once and claims once for all. Promises that from the moment a key is armed no wake is
//! lost: the key stays on the list, whatever future is dropped, until a claim from it begins; and a
//! claim that is cut short puts it back.
//!
//! Next: [`crate::dispatcher`].

use std::collections::HashMap;
use std::future::poll_fn;
use std::task::Poll;
use std::time::Instant;

use super::entry::{Began, Ended, Stretch, WatchId};
use super::wakes::Wakes;
use super::{Hub, Key};
use crate::cause::Cause;
use crate::clock;
use crate::observe::Event;
use crate::outcome::Outcome;
use crate::refused::Refused;

/// A key that is being claimed from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WokenKey<K> {
    /// The key.
    pub key: K,
    /// Why it is claimed from.
    pub cause: Cause,
    /// When it was woken, if it was.
    pub since: Option<Instant>,
    /// The stretch in which the claim is made. None when the source must search everything.
    pub stretch: Option<Stretch>,
}

/// A waiter for many keys.
#[derive(Debug)]
pub struct Watch<K: Key> {
    hub: Hub<K>,
    id: WatchId,
    /// The armed keys, with the claim under way.
    keys: HashMap<K, Option<Began>>,
}

impl<K: Key> Watch<K> {
    pub(super) fn new(hub: Hub<K>) -> Self {
        let id = hub.board().add_watch();
        Self { hub, id, keys: HashMap::new() }
    }

    pub(super) const fn id(&self) -> WatchId {
        self.id
    }

    /// Begins to wait for the key, unless it already does. A key that is not known to be empty is
    /// woken by that.
    pub fn arm(&mut self, key: K) -> Result<(), Refused> {
        if self.keys.contains_key(&key) {
            return Ok(());
        }
        let armed = self.hub.board().arm(self.id, &key, clock::now());
        armed.inspect_err(|refused| self.hub.report(Event::Refused(*refused)))?;
        self.keys.insert(key, None);
        Ok(())
    }

    /// Stops waiting for the key.
    pub fn disarm(&mut self, key: &K) {
        if let Some(claim) = self.keys.remove(key) {
            let wakes = self.hub.board().disarm(self.id, key, claim, clock::now());
            wakes.wake();
        }
    }

    /// Whether it waits for the key.
    pub fn is_armed(&self, key: &K) -> bool {
        self.keys.contains_key(key)
    }

    /// The keys it waits for.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.keys.keys()
    }

    /// Whether any key is woken.
    pub fn is_woken(&self) -> bool {
        self.hub.board().watches.get(&self.id).is_some_and(|list| !list.woken.is_empty())
    }

    /// Sleeps until a key is woken. May be dropped at any time: the list stays.
    pub async fn woken(&self) {
        poll_fn(|context| {
            let mut board = self.hub.board();
            let Some(list) = board.watches.get_mut(&self.id) else { return Poll::Pending };
            if list.woken.is_empty() {
                list.waker = Some(context.waker().clone());
                return Poll::Pending;
            }
            Poll::Ready(())
        })
        .await;
    }

    /// The woken keys with their causes, in the order of waking. Claim from each of them:
    /// [`begin`](Self::begin).
    pub fn woken_keys(&self) -> Vec<(K, Cause)> {
        let board = self.hub.board();
        let listed = board.watches.get(&self.id).into_iter().flat_map(|list| &list.woken);
        let mut woken: Vec<_> = listed.filter_map(|key| Some((key.clone(), board.woken(self.id, key)?))).collect();
        woken.sort_by_key(|(_, woken)| woken.since);
        woken.into_iter().map(|(key, woken)| (key, woken.cause)).collect()
    }

    /// Begins a claim from a key, which answers all its wakes so far. `unwoken` is the cause if the
    /// key was not woken. None if the key is not armed or is being claimed from.
    pub fn begin(&mut self, key: &K, unwoken: Cause) -> Option<WokenKey<K>> {
        let claim = self.keys.get_mut(key).filter(|claim| claim.is_none())?;
        *claim = self.hub.board().begin(self.id, key, unwoken);
        let began = (*claim)?;
        Some(WokenKey { key: key.clone(), cause: began.cause, since: began.woken_at, stretch: began.stretch() })
    }

    /// Ends the claim from a key. A failed one puts its wake back, a filled one wakes the key
    /// again. Answers whether it found a missed wake: work that nothing had announced.
    pub fn ended(&mut self, key: &K, outcome: Outcome) -> bool {
        self.end(key, Ended { outcome, announced_only: false, at: clock::now() })
    }

    /// Like [`ended`](Self::ended), for a claim that searched the announced places alone. A filled
    /// one wakes the key again without ending the [`Stretch`].
    pub fn ended_announced_only(&mut self, key: &K, outcome: Outcome) -> bool {
        self.end(key, Ended { outcome, announced_only: true, at: clock::now() })
    }

    fn end(&mut self, key: &K, end: Ended) -> bool {
        let Some(claim) = self.keys.get_mut(key).and_then(Option::take) else { return false };
        let (wakes, missed) = self.hub.board().finish(self.id, key, claim, end);
        wakes.wake();
        missed
    }
}

impl<K: Key> Drop for Watch<K> {
    fn drop(&mut self) {
        let now = clock::now();
        let mut board = self.hub.board();
        let mut wakes = Wakes::default();
        for (key, claim) in self.keys.drain() {
            wakes.extend(board.disarm(self.id, &key, claim, now));
        }
        board.watches.remove(&self.id);
        drop(board);
        wakes.wake();
    }
}
