//! All keys of one hub.
//!
//! Owns the entries, the limits, the wakers, the trust in empty looks, and which keys outlive their waiters. Promises that
//! memory is bounded by waiters and not by rings: a ring for a key nobody knows leaves no trace, because whoever arms an
//! unknown key looks anyway. A plain struct: [`Hub`](super::Hub) holds the lock and wakes what this returns.
//!
//! Next: [`super::armed`] for one key, [`super::watch`] for many.

use std::collections::{BTreeMap, HashMap};
use std::task::Waker;
use std::time::Instant;

use super::Key;
use super::entry::{Began, Ended, Entry, Trust, WaiterId};
use super::policy::HubOptions;
use super::wakes::Wakes;
use crate::cause::Cause;
use crate::dues::Dues;
use crate::link::Link;
use crate::refused::Refused;

pub(crate) type WatchId = u64;

/// A waiter, and what it waits for.
#[derive(Debug)]
pub(crate) struct WaiterAt<'k, K> {
    pub(crate) key: &'k K,
    pub(crate) id: WaiterId,
}

/// Where a waiter's wake goes.
#[derive(Debug)]
pub(crate) enum Sink {
    /// To the task that waits for this key alone.
    Task(Option<Waker>),
    /// To the list of the watch it belongs to.
    Watch(WatchId),
}

/// The rung keys of one watch, and its task.
#[derive(Debug)]
pub(crate) struct WatchList<K> {
    pub(crate) rung: BTreeMap<WaiterId, (K, Instant)>,
    pub(crate) waker: Option<Waker>,
}

/// The batons that are out, by number: which is also the order of their age.
type Handed<K> = BTreeMap<u64, (Instant, K)>;

#[derive(Debug)]
pub(crate) struct Board<K> {
    pub(crate) options: HubOptions,
    pub(crate) dues: Dues<K>,
    pub(crate) link: Link,
    pub(crate) watches: HashMap<WatchId, WatchList<K>>,
    pub(crate) runner: Option<Waker>,
    /// Until when the runner sleeps, at most.
    pub(crate) runner_at: Option<Instant>,
    pub(super) entries: HashMap<K, Entry>,
    pub(super) sinks: HashMap<WaiterId, Sink>,
    pub(super) lingering: BTreeMap<u64, (Instant, K)>,
    pub(super) handed: Handed<K>,
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
            sinks: HashMap::new(),
            lingering: BTreeMap::new(),
            handed: BTreeMap::new(),
            numbers: 0,
            trust: None,
        }
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    pub(crate) fn arm(&mut self, key: &K, sink: Sink, now: Instant) -> Result<WaiterId, Refused> {
        self.sweep(now);
        self.check_limits(key)?;
        let id = self.number();
        let entry = self.entries.entry(key.clone()).or_insert_with(|| Entry::new(self.options.policy, id));
        if let Some(place) = entry.lingers.take() {
            self.lingering.remove(&place);
        }
        entry.arm(id, id, self.trust);
        self.sinks.insert(id, sink);
        Ok(id)
    }

    pub(crate) fn must_look(&self, key: &K, id: WaiterId) -> bool {
        self.entries.get(key).is_some_and(|entry| entry.must_look(id))
    }

    pub(crate) fn ring(&mut self, key: &K, cause: Cause, now: Instant) -> Wakes {
        self.ring_told(key, cause, false, now)
    }

    /// `told`: whether it was said where the work is, to whoever looks.
    pub(crate) fn ring_told(&mut self, key: &K, cause: Cause, told: bool, now: Instant) -> Wakes {
        let number = self.number();
        let Some(entry) = self.entries.get_mut(key) else { return Wakes::default() };
        if entry.waiters() == 0 {
            self.forget(key);
            return Wakes::default();
        }
        let ids = entry.ring(cause, told, number);
        self.wake(key, ids, now)
    }

    pub(crate) fn ring_all(&mut self, cause: Cause, now: Instant) -> Wakes {
        self.forget_all_unwaited();
        let keys: Vec<K> = self.entries.keys().cloned().collect();
        let mut wakes = Wakes::default();
        for key in keys {
            wakes.extend(self.ring(&key, cause, now));
        }
        wakes
    }

    /// From here on empty looks are believed. What was said before went unheard, so everything is rung first.
    pub(crate) fn trust_anew(&mut self, now: Instant) -> Wakes {
        let wakes = self.ring_all(Cause::Reconnected, now);
        self.trust = Some(self.number());
        wakes
    }

    /// From here on no empty look is believed, those of before neither.
    pub(crate) fn distrust(&mut self) -> Wakes {
        self.trust = None;
        Wakes::default()
    }

    pub(crate) fn is_known_empty(&self, key: &K) -> bool {
        self.entries.get(key).is_some_and(|entry| entry.is_clean(self.trust))
    }

    /// The waiter is about to sleep, unless a cause is returned.
    pub(crate) fn park(&mut self, key: &K, id: WaiterId, now: Instant) -> Option<Cause> {
        let number = self.number();
        let entry = self.entries.get_mut(key)?;
        let rung = entry.park(id, number);
        self.note_baton(key, number, now);
        rung
    }

    pub(crate) fn unpark(&mut self, key: &K, id: WaiterId, now: Instant) -> Wakes {
        let number = self.number();
        self.forget_baton(key, id);
        let ids = self.entries.get_mut(key).map(|entry| entry.unpark(id, number)).unwrap_or_default();
        self.wake(key, ids, now)
    }

    pub(crate) fn begin(&mut self, key: &K, id: WaiterId, unrung: Cause) -> Option<Began> {
        self.forget_baton(key, id);
        let trust = self.trust;
        self.entries.get_mut(key).map(|entry| entry.begin(id, unrung, trust))
    }

    /// Ends a look; the second answer says whether it found work that nothing announced.
    pub(crate) fn finish(
        &mut self,
        WaiterAt { key, id }: WaiterAt<'_, K>,
        look: Began,
        end: impl Into<Ended>,
        now: Instant,
    ) -> (Wakes, bool) {
        let end = end.into();
        let turn = self.number();
        let Some(entry) = self.entries.get_mut(key) else { return (Wakes::default(), false) };
        let missed = end.outcome.found_work() && !look.cause.is_announced() && !entry.rung_since(&look);
        let ids = entry.finish(id, look, end, turn);
        (self.wake(key, ids, now), missed)
    }

    pub(crate) fn disarm(&mut self, key: &K, id: WaiterId, now: Instant) -> Wakes {
        let number = self.number();
        self.sinks.remove(&id);
        self.forget_baton(key, id);
        let Some(entry) = self.entries.get_mut(key) else { return Wakes::default() };
        let ids = entry.disarm(id, number);
        let wakes = self.wake(key, ids, now);
        self.retire(key, now);
        wakes
    }

    pub(crate) fn waiters(&self) -> usize {
        self.sinks.len()
    }

    pub(crate) fn keys(&self) -> usize {
        self.entries.len()
    }

    /// Keys that somebody waits for.
    pub(crate) fn waited(&self) -> Vec<K> {
        let waited = self.entries.iter().filter(|(_, entry)| entry.waiters() > 0);
        waited.map(|(key, _)| key.clone()).collect()
    }

    /// Turns ids into wakers, and watches a baton until its look begins.
    pub(super) fn wake(&mut self, key: &K, ids: Vec<WaiterId>, now: Instant) -> Wakes {
        let mut wakes = Wakes::default();
        for id in ids {
            wakes.count += 1;
            match self.sinks.get_mut(&id) {
                Some(Sink::Task(waker)) => wakes.wakers.extend(waker.take()),
                Some(Sink::Watch(watch)) => {
                    let Some(list) = self.watches.get_mut(watch) else { continue };
                    list.rung.insert(id, (key.clone(), now));
                    wakes.wakers.extend(list.waker.take());
                }
                None => {}
            }
        }
        if wakes.count > 0
            && let Some(baton) = self.entries.get(key).and_then(Entry::baton)
        {
            self.note_baton(key, baton.number, now);
            wakes.wakers.extend(self.hurry_runner());
        }
        wakes
    }
}
