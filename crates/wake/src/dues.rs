//! Due times: wakes in the future.
//!
//! Owns the instants at which keys become due. Promises that each wakes its key, never early; that
//! an earlier one is seen at once ([`Dues::next`]); and that the limit loses nothing: instants that
//! do not fit are kept as one instant at which every key is woken. Refuses wall clocks: instants
//! are monotonic, made from delays that the database computed.
//!
//! Each instant has a source. A claim round or a heartbeat knows *the* next due time of a key and
//! replaces what it knew before, while announcements add up. (One atomic with the earliest instant
//! would forget the second timer.)
//!
//! Next: [`crate::hub`], whose [`Runner`](crate::Runner) sleeps until [`Dues::next`].

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Instant;

use crate::cause::Cause;
use crate::hub::Key;

/// Where the due time of a key comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DueSource {
    /// A claim round returned the next due time of its keys.
    Round,
    /// The heartbeat read it.
    Heartbeat,
    /// The writer of the row announced a delay or a retry.
    Announced,
    /// The holder of the lease announced its end.
    Lease,
}

impl DueSource {
    /// The cause of the wake when it comes due.
    pub const fn cause(self) -> Cause {
        match self {
            Self::Round | Self::Heartbeat | Self::Announced => Cause::Due,
            Self::Lease => Cause::LeaseExpired,
        }
    }
}

/// A due time that has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fired<K> {
    /// Wake this key.
    Key(K, DueSource),
    /// Wake every waited key: an instant that did not fit was for one of them.
    Everything,
}

impl<K> Fired<K> {
    /// Why the key is woken.
    pub const fn cause(&self) -> Cause {
        match self {
            Self::Key(_, source) => source.cause(),
            Self::Everything => Cause::Due,
        }
    }
}

/// An instant and a number that keeps equal instants apart, in order of arrival.
type Slot = (Instant, u64);

/// The ordered set of due times to come.
#[derive(Debug)]
pub struct Dues<K> {
    limit: usize,
    arrivals: u64,
    order: BTreeMap<Slot, (K, DueSource)>,
    slots: HashMap<(K, DueSource), BTreeSet<Slot>>,
    /// The earliest instant that did not fit.
    overflow: Option<Instant>,
}

impl<K: Key> Dues<K> {
    /// An empty set that holds up to `limit` instants, at least one.
    pub fn new(limit: usize) -> Self {
        Self { limit: limit.max(1), arrivals: 0, order: BTreeMap::new(), slots: HashMap::new(), overflow: None }
    }

    /// Adds an instant for `key`. Those already there stay.
    pub fn add(&mut self, key: K, source: DueSource, at: Instant) {
        let known = self.slots.get(&(key.clone(), source));
        if known.is_some_and(|slots| slots.range((at, 0)..=(at, u64::MAX)).next().is_some()) {
            return;
        }
        self.arrivals += 1;
        let slot = (at, self.arrivals);
        self.slots.entry((key.clone(), source)).or_default().insert(slot);
        self.order.insert(slot, (key, source));
        self.keep_within_limit();
    }

    /// Replaces what `source` knows about `key`: its next due time is `at`, or it has none.
    pub fn replace(&mut self, key: K, source: DueSource, at: Option<Instant>) {
        self.remove(&key, source);
        if let Some(at) = at {
            self.add(key, source, at);
        }
    }

    /// Forgets what `source` knew about `key`.
    pub fn remove(&mut self, key: &K, source: DueSource) {
        for slot in self.slots.remove(&(key.clone(), source)).unwrap_or_default() {
            self.order.remove(&slot);
        }
    }

    /// The earliest instant at which something comes due.
    pub fn next(&self) -> Option<Instant> {
        let first = self.order.first_key_value().map(|(slot, _)| slot.0);
        match (first, self.overflow) {
            (Some(first), Some(overflow)) => Some(first.min(overflow)),
            (first, overflow) => first.or(overflow),
        }
    }

    /// Takes all that is due at `now`, earliest first.
    pub fn take(&mut self, now: Instant) -> Vec<Fired<K>> {
        let mut fired = Vec::new();
        while let Some(first) = self.order.first_entry() {
            if first.key().0 > now {
                break;
            }
            let (slot, (key, source)) = first.remove_entry();
            self.forget_slot(&key, source, slot);
            fired.push(Fired::Key(key, source));
        }
        if self.overflow.is_some_and(|at| at <= now) {
            self.overflow = None;
            fired.push(Fired::Everything);
        }
        fired
    }

    /// How many instants it holds.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether no due time is to come.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty() && self.overflow.is_none()
    }

    /// The farthest instants go first: a round will probably return them again before their time,
    /// and if not, every key is woken.
    fn keep_within_limit(&mut self) {
        while self.order.len() > self.limit {
            let Some((slot, (key, source))) = self.order.pop_last() else { return };
            self.forget_slot(&key, source, slot);
            self.overflow = Some(self.overflow.map_or(slot.0, |at| at.min(slot.0)));
        }
    }

    fn forget_slot(&mut self, key: &K, source: DueSource, slot: Slot) {
        let name = (key.clone(), source);
        if let Some(slots) = self.slots.get_mut(&name) {
            slots.remove(&slot);
            if slots.is_empty() {
                self.slots.remove(&name);
            }
        }
    }
}
