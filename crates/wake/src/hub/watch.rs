//! Waiting for many keys at once.
//!
//! Owns one waiter per key and a list of those that were rung, so that a dispatcher with a thousand keys wakes once and
//! looks once for all. Promises the same as [`Armed`](super::Armed) for each of its keys.
//!
//! Next: [`crate::dispatcher`].

use std::collections::{BTreeMap, HashMap};
use std::future::poll_fn;
use std::task::Poll;
use std::time::Instant;

use super::board::{Board, Sink, WaiterAt, WatchId, WatchList};
use super::entry::{Began, Ended, Stretch, WaiterId};
use super::{Hub, Key};
use crate::cause::Cause;
use crate::clock;
use crate::observe::Event;
use crate::outcome::Outcome;
use crate::refused::Refused;

/// A key whose look has begun, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RungKey<K> {
    /// The key.
    pub key: K,
    /// Why it is looked at.
    pub cause: Cause,
    /// When it was rung, if it was.
    pub since: Option<Instant>,
    /// In which stretch it is looked at; none when everything must be looked for.
    pub stretch: Option<Stretch>,
}

/// One waiter for many keys.
#[derive(Debug)]
pub struct Watch<K: Key> {
    hub: Hub<K>,
    id: WatchId,
    keys: HashMap<K, Waiting>,
}

#[derive(Debug, Clone, Copy)]
struct Waiting {
    id: WaiterId,
    began: Option<Began>,
}

impl<K: Key> Watch<K> {
    pub(super) fn new(hub: Hub<K>) -> Self {
        let mut board = hub.board();
        let id = board.number();
        board.watches.insert(id, WatchList { rung: BTreeMap::new(), waker: None });
        drop(board);
        Self { hub, id, keys: HashMap::new() }
    }

    /// Begins to wait for the key, unless it already does. A key that is not known to be empty is rung by that.
    pub fn arm(&mut self, key: K) -> Result<(), Refused> {
        if self.keys.contains_key(&key) {
            return Ok(());
        }
        let mut board = self.hub.board();
        let now = clock::now();
        match board.arm(&key, Sink::Watch(self.id), now) {
            Ok(id) => {
                sleep_or_list(&mut board, self.id, &WaiterAt { key: &key, id }, now);
                drop(board);
                self.keys.insert(key, Waiting { id, began: None });
                Ok(())
            }
            Err(refused) => {
                drop(board);
                self.hub.tell(Event::Refused(refused));
                Err(refused)
            }
        }
    }

    /// Stops waiting for the key.
    pub fn disarm(&mut self, key: &K) {
        if let Some(waiting) = self.keys.remove(key) {
            let mut board = self.hub.board();
            let wakes = leave(&mut board, self.id, key, waiting);
            drop(board);
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

    /// Whether any key is rung.
    pub fn is_rung(&self) -> bool {
        self.hub.board().watches.get(&self.id).is_some_and(|list| !list.rung.is_empty())
    }

    /// Sleeps until a key is rung. May be dropped at any time: the list stays.
    pub async fn rung(&self) {
        poll_fn(|context| {
            let mut board = self.hub.board();
            let Some(list) = board.watches.get_mut(&self.id) else { return Poll::Pending };
            if list.rung.is_empty() {
                list.waker = Some(context.waker().clone());
                return Poll::Pending;
            }
            Poll::Ready(())
        })
        .await;
    }

    /// The woken keys and why. Their looks begin with [`look_at`](Self::look_at).
    pub fn rung_keys(&self) -> Vec<(K, Cause)> {
        let board = self.hub.board();
        let list = board.watches.get(&self.id).map(|list| &list.rung);
        let cause = |key: &K, id: WaiterId| board.entries.get(key)?.rung(id);
        list.into_iter().flatten().filter_map(|(id, (key, _))| Some((key.clone(), cause(key, *id)?))).collect()
    }

    /// Begins a look at a key: its rings so far are answered by it. `unrung` is why, should it not be rung. Nothing if it is
    /// not armed, or being looked at.
    pub fn look_at(&mut self, key: &K, unrung: Cause) -> Option<RungKey<K>> {
        let waiting = self.keys.get_mut(key).filter(|waiting| waiting.began.is_none())?;
        let mut board = self.hub.board();
        let rung = board.watches.get_mut(&self.id).and_then(|list| list.rung.remove(&waiting.id));
        waiting.began = board.begin(key, waiting.id, unrung);
        let began = waiting.began?;
        let (cause, since, stretch) = (began.cause, rung.map(|(_, since)| since), began.stretch());
        Some(RungKey { key: key.clone(), cause, since, stretch })
    }

    /// Ends the look at a key. A failed one puts its ring back, a filled one rings again. Answers whether it was a missed
    /// wake: work that nothing had announced.
    pub fn looked(&mut self, key: &K, outcome: Outcome) -> bool {
        self.end(key, outcome.into())
    }

    /// Ends a look that followed only what it was told, in a stretch of which the rest is known. A filled one rings again, in
    /// the same stretch.
    pub fn followed(&mut self, key: &K, outcome: Outcome) -> bool {
        self.end(key, Ended { outcome, told: true })
    }

    fn end(&mut self, key: &K, end: Ended) -> bool {
        let Some(waiting) = self.keys.get_mut(key) else { return false };
        let Some(began) = waiting.began.take() else { return false };
        let mut board = self.hub.board();
        let now = clock::now();
        let id = waiting.id;
        let (wakes, missed) = board.finish(WaiterAt { key, id }, began, end, now);
        sleep_or_list(&mut board, self.id, &WaiterAt { key, id }, now);
        drop(board);
        wakes.wake();
        missed
    }
}

impl<K: Key> Drop for Watch<K> {
    fn drop(&mut self) {
        let mut board = self.hub.board();
        let mut wakes = super::Wakes::default();
        for (key, waiting) in self.keys.drain() {
            wakes.extend(leave(&mut board, self.id, &key, waiting));
        }
        board.watches.remove(&self.id);
        drop(board);
        wakes.wake();
    }
}

/// The waiter sleeps, or stands on the list if it was rung meanwhile. Called by the watch's own task, which looks at the
/// list before it sleeps, so nobody need be woken.
fn sleep_or_list<K: Key>(board: &mut Board<K>, watch: WatchId, waiter: &WaiterAt<'_, K>, now: Instant) {
    let WaiterAt { key, id } = *waiter;
    if board.park(key, id, now).is_some()
        && let Some(list) = board.watches.get_mut(&watch)
    {
        list.rung.insert(id, (key.clone(), now));
    }
}

fn leave<K: Key>(board: &mut Board<K>, watch: WatchId, key: &K, waiting: Waiting) -> super::Wakes {
    let now = clock::now();
    if let Some(list) = board.watches.get_mut(&watch) {
        list.rung.remove(&waiting.id);
    }
    // A look that is cut short has answered nothing.
    let mut wakes = super::Wakes::default();
    if let Some(began) = waiting.began {
        wakes.extend(board.finish(WaiterAt { key, id: waiting.id }, began, Outcome::Failed, now).0);
    }
    wakes.extend(board.disarm(key, waiting.id, now));
    wakes
}
