//! All keys of one hub.
//!
//! Owns the entries, the limits, the watches, the trust in empty claims, and which keys outlive
//! their waiters. Promises that memory is bounded by waiters and not by wakes: a wake of an unknown
//! key leaves no trace, because a waiter that arms an unknown key claims anyway. A plain struct:
//! [`Hub`](super::Hub) holds the lock and wakes the tasks that this returns.
//!
//! Next: [`super::watch`].

use std::collections::{BTreeMap, HashMap, HashSet};
use std::task::Waker;
use std::time::Instant;

use super::Key;
use super::entry::{Began, Ended, Entry, Trust, WatchId, Woken};
use super::options::HubOptions;
use super::wakes::Wakes;
use crate::cause::Cause;
use crate::dues::Dues;
use crate::link::Link;
use crate::outcome::Outcome;
use crate::refused::Refused;

/// The woken keys of one watch, and its task. A key that is being claimed from is listed when the
/// claim ends.
#[derive(Debug, Default)]
pub(crate) struct WatchList<K> {
    pub(crate) woken: HashSet<K>,
    pub(crate) waker: Option<Waker>,
}

#[derive(Debug)]
pub(crate) struct Board<K> {
    pub(crate) options: HubOptions,
    pub(crate) dues: Dues<K>,
    pub(crate) link: Link,
    pub(crate) watches: HashMap<WatchId, WatchList<K>>,
    pub(crate) runner: Option<Waker>,
    /// When the runner wakes up at the latest.
    pub(crate) runner_at: Option<Instant>,
    pub(super) entries: HashMap<K, Entry>,
    pub(super) waiters: usize,
    pub(super) lingering: BTreeMap<u64, (Instant, K)>,
    numbers: u64,
    pub(super) trust: Option<Trust>,
}

impl<K: Key> Board<K> {
    pub(crate) fn new(options: HubOptions) -> Self {
        Self {
            dues: Dues::new(options.max_dues),
            options,
            link: Link::Connecting { attempts: 0 },
            watches: HashMap::new(),
            runner: None,
            runner_at: None,
            entries: HashMap::new(),
            waiters: 0,
            lingering: BTreeMap::new(),
            numbers: 0,
            trust: None,
        }
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    pub(crate) fn add_watch(&mut self) -> WatchId {
        let id = self.number();
        self.watches.insert(id, WatchList { woken: HashSet::new(), waker: None });
        id
    }

    /// The watch waits for the key from now on. It must not wait for it already.
    pub(crate) fn arm(&mut self, watch: WatchId, key: &K, now: Instant) -> Result<(), Refused> {
        self.sweep(now);
        self.check_limits(key)?;
        let number = self.number();
        let entry = self.entries.entry(key.clone()).or_insert_with(|| Entry::new(number));
        if let Some(place) = entry.lingers.take() {
            self.lingering.remove(&place);
        }
        entry.arm(watch, self.trust, now);
        let awake = entry.woken(watch).map(|_| watch);
        self.waiters += 1;
        // Called by the watch's own task, which reads the list before it sleeps.
        drop(self.list(key, awake));
        Ok(())
    }

    /// The watch no longer waits for the key. A claim that is cut short has failed.
    pub(crate) fn disarm(&mut self, watch: WatchId, key: &K, claim: Option<Began>, now: Instant) -> Wakes {
        let failed = Ended { outcome: Outcome::Failed, announced_only: false, at: now };
        let wakes = claim.map(|claim| self.finish(watch, key, claim, failed).0).unwrap_or_default();
        let Some(entry) = self.entries.get_mut(key) else { return wakes };
        entry.disarm(watch);
        self.waiters -= 1;
        if let Some(list) = self.watches.get_mut(&watch) {
            list.woken.remove(key);
        }
        self.retire(key, now);
        wakes
    }

    /// `announced`: whether the place of the work was announced to the source.
    pub(crate) fn wake(&mut self, key: &K, woken: Woken, announced: bool) -> Wakes {
        let number = self.number();
        let Some(entry) = self.entries.get_mut(key) else { return Wakes::default() };
        if entry.waiters() == 0 {
            self.forget(key);
            return Wakes::default();
        }
        let slept = entry.wake(woken, announced, number);
        self.list(key, slept)
    }

    pub(crate) fn wake_all(&mut self, woken: Woken) -> Wakes {
        self.forget_all_unwaited();
        let keys: Vec<K> = self.entries.keys().cloned().collect();
        let mut wakes = Wakes::default();
        for key in keys {
            wakes.extend(self.wake(&key, woken, false));
        }
        wakes
    }

    /// From here on empty claims are trusted. Earlier wakes may be missing, so every key is woken
    /// first.
    pub(crate) fn begin_trust(&mut self, now: Instant) -> Wakes {
        let wakes = self.wake_all(Woken { cause: Cause::Reconnected, since: now });
        self.trust = Some(self.number());
        wakes
    }

    /// From here on no empty claim is trusted, an earlier one neither.
    pub(crate) fn end_trust(&mut self) {
        self.trust = None;
    }

    pub(crate) fn is_known_empty(&self, key: &K) -> bool {
        self.entries.get(key).is_some_and(|entry| entry.is_clean(self.trust))
    }

    pub(crate) fn woken(&self, watch: WatchId, key: &K) -> Option<Woken> {
        self.entries.get(key)?.woken(watch)
    }

    pub(crate) fn begin(&mut self, watch: WatchId, key: &K, unwoken: Cause) -> Option<Began> {
        if let Some(list) = self.watches.get_mut(&watch) {
            list.woken.remove(key);
        }
        self.entries.get_mut(key)?.begin(watch, unwoken, self.trust)
    }

    /// Ends a claim. The second answer is whether the claim found work that nothing announced.
    pub(crate) fn finish(&mut self, watch: WatchId, key: &K, claim: Began, end: Ended) -> (Wakes, bool) {
        let number = self.number();
        let Some(entry) = self.entries.get_mut(key) else { return (Wakes::default(), false) };
        let missed = end.outcome.found_work() && !claim.cause.is_announced() && !entry.woken_since(&claim);
        let awake = entry.finish(watch, claim, end, number);
        (self.list(key, awake), missed)
    }

    pub(crate) fn keys(&self) -> usize {
        self.entries.len()
    }

    /// The keys that have waiters.
    pub(crate) fn waited(&self) -> Vec<K> {
        let waited = self.entries.iter().filter(|(_, entry)| entry.waiters() > 0);
        waited.map(|(key, _)| key.clone()).collect()
    }

    /// The runner, if it would sleep too long.
    pub(crate) fn hurry_runner(&mut self) -> Option<Waker> {
        let wanted = self.dues.next()?;
        if self.runner_at.is_none_or(|at| wanted < at) { self.runner.take() } else { None }
    }

    /// Puts the key on the lists of the watches that must claim from it.
    fn list(&mut self, key: &K, awake: impl IntoIterator<Item = WatchId>) -> Wakes {
        let mut wakes = Wakes::default();
        for watch in awake {
            wakes.count += 1;
            let Some(list) = self.watches.get_mut(&watch) else { continue };
            list.woken.insert(key.clone());
            wakes.wakers.extend(list.waker.take());
        }
        wakes
    }
}
