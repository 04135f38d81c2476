//! One claim round, from the wake to the leases.
//!
//! Owns the choice of keys and demands for a round, and what its end means for each of them.
//! Promises that wakes are cleared when the round begins and put back if it fails, and that due
//! times are known before a key is called empty. Competing, a round is for every demand that waits
//! for its keys; with broadcast, the rounds that wakes ask for are for one demand each.
//!
//! Next: [`crate::source::Source::look`].

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use super::{Dispatcher, LookEnd, Policy, Work};
use crate::backoff::Backoff;
use crate::cause::Cause;
use crate::clock;
use crate::demand::{Answer, DemandId};
use crate::dues::DueSource;
use crate::hub::{RungKey, Watch};
use crate::observe::Event;
use crate::outcome::Outcome;
use crate::pace_options::PaceCause;
use crate::source::{Asked, LookFailed, Looked, Round, Source};

/// A round under way.
pub(super) struct Flight<S: Source> {
    pub(super) work: Work<LookEnd<S>>,
    pub(super) keys: Vec<RungKey<S::Key>>,
    pub(super) asked: Vec<Asked<S::Key, S::Ask>>,
    /// The latest demand when it began; those it had no room for are not later than this.
    pub(super) newest: DemandId,
}

impl<S: Source> Dispatcher<S> {
    /// Begins a round if somebody waits and something calls for it.
    pub(super) fn look_if_called_for(&mut self) {
        let now = clock::now();
        if self.flight.is_some() || self.gate.opens_at(now).is_some() || !self.desk.demands().waits() {
            return;
        }
        let mut called = self.wanted_keys(now);
        let woken = self.watch.rung_keys();
        let broadcast = self.options.policy == Policy::Broadcast;
        if broadcast {
            let mut demands = self.desk.demands();
            for (key, cause) in &woken {
                demands.owe_attempts(key, *cause);
            }
        }
        // A round that is made anyway is for the woken keys too: newcomers without end delay no
        // message.
        if !broadcast || !called.is_empty() {
            for (key, _) in woken {
                called.entry(key).or_insert(Cause::More);
            }
            self.begin_round(called, now);
        }
        if broadcast && self.flight.is_none() {
            self.begin_attempt(now);
        }
    }

    /// One round for every demand that waits for the keys.
    fn begin_round(&mut self, called: HashMap<S::Key, Cause>, now: Instant) {
        let demands = self.desk.demands();
        let asked = demands.waiting_under(called.keys(), self.options.max_round);
        let newest = demands.newest();
        drop(demands);
        let keys = self.begin_keys(called, &asked);
        if !keys.is_empty() {
            self.note_causes(&keys, now);
            self.begin_look(keys, asked, newest);
        }
    }

    /// A round for one demand alone, the next of those that were woken.
    fn begin_attempt(&mut self, now: Instant) {
        let mut demands = self.desk.demands();
        let next = demands.next_attempt();
        let newest = demands.newest();
        drop(demands);
        let Some((asked, cause)) = next else { return };
        let keys: Vec<_> = asked.keys.iter().filter_map(|key| self.begin_key(key, cause)).collect();
        if !keys.is_empty() {
            self.note_causes(&keys, now);
            self.begin_look(keys, vec![asked], newest);
        }
    }

    /// The keys that newcomers want claimed from, and when it is time to poll all of them, each
    /// with its reason.
    fn wanted_keys(&mut self, now: Instant) -> HashMap<S::Key, Cause> {
        let mut called: HashMap<S::Key, Cause> = HashMap::new();
        if self.tick_at <= now {
            called.extend(self.tick_keys(now));
            self.schedule_tick(now);
        }
        for (key, cause) in std::mem::take(&mut self.wanted) {
            match cause {
                // A newcomer with patience adds no reason to those there are.
                Cause::Started if self.hub.is_known_empty(&key) => {}
                Cause::Started => _ = called.entry(key).or_insert(cause),
                _ => _ = called.insert(key, cause),
            }
        }
        called
    }

    fn tick_keys(&self, now: Instant) -> Vec<(S::Key, Cause)> {
        let watchful = self.pacer.pace().is_watchful();
        let cause = if watchful { Cause::Watchful } else { Cause::Fallback };
        let rests = |key: &S::Key| self.backoffs.get(key).is_some_and(|backoff| !backoff.is_ready(now));
        self.watch.keys().filter(|key| !(watchful && rests(key))).map(|key| (key.clone(), cause)).collect()
    }

    /// Clears the wakes of the keys this round is for. A key none of whose demands found room in it
    /// stays as it was.
    fn begin_keys(&mut self, called: HashMap<S::Key, Cause>, asked: &[Asked<S::Key, S::Ask>]) -> Vec<RungKey<S::Key>> {
        let served: HashSet<&S::Key> = asked.iter().flat_map(|asked| asked.keys.iter()).collect();
        let mut keys = Vec::with_capacity(called.len());
        for (key, cause) in called {
            if !served.contains(&key) {
                if self.watch.is_armed(&key) {
                    self.wanted.insert(key, cause);
                }
                continue;
            }
            keys.extend(self.begin_key(&key, cause));
        }
        keys
    }

    /// Clears the wake of one key. Nothing if it is not armed.
    fn begin_key(&mut self, key: &S::Key, cause: Cause) -> Option<RungKey<S::Key>> {
        let mut rung = self.watch.look_at(key, cause)?;
        if !matches!(cause, Cause::More | Cause::Started) {
            rung.stretch = None; // somebody wants to be sure
        }
        if rung.cause.is_announced() {
            self.backoffs.remove(key); // a wake beats back-off
        }
        Some(rung)
    }

    fn note_causes(&mut self, keys: &[RungKey<S::Key>], now: Instant) {
        let late = |rung: &RungKey<S::Key>| {
            let free_since = self.gate.free_since().max(rung.since);
            free_since.is_some_and(|since| now.saturating_duration_since(since) > self.options.delivery_timeout)
        };
        let undelivered = keys.iter().any(|rung| rung.since.is_some() && late(rung));
        if undelivered {
            self.hub.tell(Event::Undelivered);
        }
        let mut causes: Vec<PaceCause> = keys.iter().filter_map(|rung| PaceCause::of(rung.cause)).collect();
        causes.extend(undelivered.then_some(PaceCause::Undelivered));
        for cause in causes {
            let change = self.pacer.note(cause, now);
            self.pace_changed(change, now);
        }
    }

    fn begin_look(&mut self, keys: Vec<RungKey<S::Key>>, asked: Vec<Asked<S::Key, S::Ask>>, newest: DemandId) {
        let round = Round { keys: keys.clone(), asked: asked.clone() };
        let (source, limit) = (Arc::clone(&self.source), self.options.look_timeout);
        let work = Box::pin(async move {
            let look = tokio::time::timeout(limit, source.look(round)).await;
            look.unwrap_or(Err(LookFailed))
        });
        self.desk.demands().in_flight = keys.len();
        self.flight = Some(Flight { work, keys, asked, newest });
    }

    pub(super) fn end_look(&mut self, end: LookEnd<S>) {
        let Some(flight) = self.flight.take() else { return };
        let now = clock::now();
        let overall = match &end {
            Err(LookFailed) => Outcome::Failed,
            Ok(looked) if !looked.leases.is_empty() && looked.more.is_empty() => Outcome::UnderFilled,
            Ok(looked) if !looked.leases.is_empty() => Outcome::Filled,
            Ok(looked) if !looked.contended.is_empty() => Outcome::Contended,
            Ok(_) => Outcome::Empty,
        };
        let cause = flight.keys.iter().map(|rung| rung.cause).find(|cause| cause.is_announced());
        let cause = cause.or_else(|| flight.keys.first().map(|rung| rung.cause)).unwrap_or(Cause::Asked);
        self.hub.tell(Event::Looked { cause, outcome: overall, keys: flight.keys.len() });
        let pause = self.pacer.pause();
        // A due may come from a hint as well, and hints may be forged.
        let hinted = flight.keys.iter().all(|rung| matches!(rung.cause, Cause::Notified | Cause::Due));
        self.gate.looked(overall, hinted, now, pause);
        let change = self.pacer.looked(overall, now);
        self.pace_changed(change, now);
        match end {
            Ok(looked) => self.settle_look(&flight, looked, now),
            Err(LookFailed) => self.put_back(&flight),
        }
        let mut demands = self.desk.demands();
        demands.in_flight = 0;
        demands.backed_off = self.backoffs.len();
    }

    fn settle_look(&mut self, flight: &Flight<S>, looked: Looked<S::Key, S::Lease>, now: Instant) {
        self.desk.demands().failing = false;
        let followed = as_set(&looked.followed);
        self.learn_dues(flight, &followed, looked.dues);
        let fed = fed_keys(&flight.asked, &looked.leases);
        let (more, contended) = (as_set(&looked.more), as_set(&looked.contended));
        let mut bare = HashSet::new();
        for RungKey { key, cause, .. } in &flight.keys {
            let outcome = if more.contains(key) {
                Outcome::Filled
            } else if contended.contains(key) {
                Outcome::Contended
            } else if fed.contains(key) {
                Outcome::UnderFilled
            } else {
                Outcome::Empty
            };
            if outcome.shows_no_more() {
                bare.insert(key);
            }
            let end = if followed.contains(key) { Watch::followed } else { Watch::looked };
            if end(&mut self.watch, key, outcome) {
                self.hub.tell(Event::Missed { cause: *cause });
            }
            self.settle_key(key, outcome, now);
        }
        self.hand_out(&flight.asked, looked.leases);
        self.answer_impatient(flight, &bare, || Answer::Nothing);
    }

    fn settle_key(&mut self, key: &S::Key, outcome: Outcome, now: Instant) {
        match outcome {
            Outcome::Contended => {
                self.hub.ring_after(key.clone(), DueSource::Announced, self.options.contended_pause);
            }
            Outcome::Empty if !self.hub.link().is_proven() => {
                let options = self.options.backoff;
                self.backoffs.entry(key.clone()).or_insert_with(|| Backoff::new(options)).empty(now);
            }
            Outcome::Empty | Outcome::UnderFilled | Outcome::Filled | Outcome::Failed => {
                self.backoffs.remove(key);
            }
        }
    }

    /// Before any key is called empty: a due time that came between would otherwise be nobody's.
    fn learn_dues(&self, flight: &Flight<S>, followed: &HashSet<&S::Key>, dues: Vec<(S::Key, std::time::Duration)>) {
        let known: HashSet<&S::Key> = dues.iter().map(|(key, _)| key).chain(followed.iter().copied()).collect();
        let without = flight.keys.iter().filter(|rung| !known.contains(&rung.key));
        let without: Vec<S::Key> = without.map(|rung| rung.key.clone()).collect();
        for key in without {
            self.hub.set_due(key, DueSource::Looked, None);
        }
        for (key, delay) in dues {
            self.hub.set_due(key, DueSource::Looked, Some(delay));
        }
    }

    fn put_back(&mut self, flight: &Flight<S>) {
        self.desk.demands().failing = true;
        for rung in &flight.keys {
            self.watch.looked(&rung.key, Outcome::Failed);
        }
        self.answer_impatient(flight, &HashSet::new(), || Answer::Failed);
    }
}

fn as_set<K: std::hash::Hash + Eq>(keys: &[K]) -> HashSet<&K> {
    keys.iter().collect()
}

/// The keys of the demands that got something.
fn fed_keys<K: crate::hub::Key, A, L>(asked: &[Asked<K, A>], leases: &[(DemandId, L)]) -> HashSet<K> {
    let fed: HashSet<DemandId> = leases.iter().map(|(id, _)| *id).collect();
    let fed = asked.iter().filter(|asked| fed.contains(&asked.id));
    fed.flat_map(|asked| asked.keys.iter().cloned()).collect()
}
