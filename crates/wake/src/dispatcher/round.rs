//! One claim round, from the wake to the leases.
//!
//! Owns the choice of keys and demands for a round, and what its end means for each of them.
//! Promises that wakes are cleared when the round begins and put back if it fails, and that due
//! times are known before a key is called empty. With the competing policy a round is for every
//! demand that waits for its keys; with broadcast a round that a wake causes is for one demand.
//!
//! Next: [`crate::source::Source::claim`].

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use super::{Dispatcher, Policy, RoundEnd, Work};
use crate::backoff::Backoff;
use crate::cause::Cause;
use crate::clock;
use crate::demand::{Answer, DemandId};
use crate::dues::DueSource;
use crate::hub::{Watch, WokenKey};
use crate::observe::Event;
use crate::outcome::Outcome;
use crate::poll_mode_options::FallbackCause;
use crate::source::{Round, RoundFailed, RoundResult, Source, WaitingDemand};

/// A round under way.
pub(super) struct Flight<S: Source> {
    pub(super) work: Work<RoundEnd<S>>,
    pub(super) keys: Vec<WokenKey<S::Key>>,
    pub(super) demands: Vec<WaitingDemand<S::Key, S::Request>>,
    /// The latest demand when the round began. Demands that had no room in it are not later.
    pub(super) newest: DemandId,
}

impl<S: Source> Dispatcher<S> {
    /// Begins a round if demands wait and there is a reason to claim.
    pub(super) fn claim_if_needed(&mut self) {
        let now = clock::now();
        if self.flight.is_some() || self.gate.opens_at(now).is_some() || !self.desk.demands().waits() {
            return;
        }
        let mut causes = self.wanted_keys(now);
        let woken = self.watch.woken_keys();
        let broadcast = self.options.policy == Policy::Broadcast;
        if broadcast {
            let mut demands = self.desk.demands();
            for (key, cause) in &woken {
                demands.owe_attempts(key, *cause);
            }
        }
        // A round that is made anyway is for the woken keys too, so that a stream of new demands
        // delays no work.
        if !broadcast || !causes.is_empty() {
            for (key, _) in woken {
                causes.entry(key).or_insert(Cause::More);
            }
            self.begin_round(causes, now);
        }
        if broadcast && self.flight.is_none() {
            self.begin_attempt(now);
        }
    }

    /// One round for every demand that waits for the keys.
    fn begin_round(&mut self, causes: HashMap<S::Key, Cause>, now: Instant) {
        let demands = self.desk.demands();
        let waiting = demands.waiting_under(causes.keys(), self.options.max_round);
        let newest = demands.newest();
        drop(demands);
        let keys = self.begin_keys(causes, &waiting);
        if !keys.is_empty() {
            self.note_causes(&keys, now);
            self.start_round(keys, waiting, newest);
        }
    }

    /// A round for one demand alone, the next of those that were woken.
    fn begin_attempt(&mut self, now: Instant) {
        let mut demands = self.desk.demands();
        let next = demands.next_attempt();
        let newest = demands.newest();
        drop(demands);
        let Some((demand, cause)) = next else { return };
        let keys: Vec<_> = demand.keys.iter().filter_map(|key| self.begin_key(key, cause)).collect();
        if !keys.is_empty() {
            self.note_causes(&keys, now);
            self.start_round(keys, vec![demand], newest);
        }
    }

    /// The keys to claim from for new demands, and all keys when it is time to poll, each with its
    /// cause.
    fn wanted_keys(&mut self, now: Instant) -> HashMap<S::Key, Cause> {
        let mut causes: HashMap<S::Key, Cause> = HashMap::new();
        if self.tick_at <= now {
            causes.extend(self.tick_keys(now));
            self.schedule_tick(now);
        }
        for (key, cause) in std::mem::take(&mut self.wanted) {
            match cause {
                // A new demand that can wait does not replace another cause.
                Cause::Started if self.hub.is_known_empty(&key) => {}
                Cause::Started => _ = causes.entry(key).or_insert(cause),
                _ => _ = causes.insert(key, cause),
            }
        }
        causes
    }

    fn tick_keys(&self, now: Instant) -> Vec<(S::Key, Cause)> {
        let polls = self.poll_mode.mode().is_fallback();
        let cause = if polls { Cause::FallbackPolling } else { Cause::Fallback };
        let rests = |key: &S::Key| self.backoffs.get(key).is_some_and(|backoff| !backoff.is_ready(now));
        self.watch.keys().filter(|key| !(polls && rests(key))).map(|key| (key.clone(), cause)).collect()
    }

    /// Clears the wakes of the keys this round is for. A key stays as it was if the round has room
    /// for none of its demands.
    fn begin_keys(
        &mut self,
        causes: HashMap<S::Key, Cause>,
        demands: &[WaitingDemand<S::Key, S::Request>],
    ) -> Vec<WokenKey<S::Key>> {
        let served: HashSet<&S::Key> = demands.iter().flat_map(|demand| demand.keys.iter()).collect();
        let mut keys = Vec::with_capacity(causes.len());
        for (key, cause) in causes {
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

    /// Clears the wake of one key. None if the key is not armed.
    fn begin_key(&mut self, key: &S::Key, cause: Cause) -> Option<WokenKey<S::Key>> {
        let mut woken = self.watch.begin(key, cause)?;
        if !matches!(cause, Cause::More | Cause::Started) {
            woken.stretch = None; // this claim must search everything
        }
        if woken.cause.is_announced() {
            self.backoffs.remove(key); // a wake ends the back-off
        }
        Some(woken)
    }

    fn note_causes(&mut self, keys: &[WokenKey<S::Key>], now: Instant) {
        let late = |woken: &WokenKey<S::Key>| {
            let free_since = self.gate.free_since().max(woken.since);
            free_since.is_some_and(|since| now.saturating_duration_since(since) > self.options.delivery_timeout)
        };
        let undelivered = keys.iter().any(|woken| woken.since.is_some() && late(woken));
        if undelivered {
            self.hub.report(Event::Undelivered);
        }
        let mut causes: Vec<FallbackCause> = keys.iter().filter_map(|woken| FallbackCause::of(woken.cause)).collect();
        causes.extend(undelivered.then_some(FallbackCause::Undelivered));
        for cause in causes {
            let change = self.poll_mode.note(cause, now);
            self.poll_mode_changed(change, now);
        }
    }

    fn start_round(
        &mut self,
        keys: Vec<WokenKey<S::Key>>,
        demands: Vec<WaitingDemand<S::Key, S::Request>>,
        newest: DemandId,
    ) {
        let round = Round { keys: keys.clone(), demands: demands.clone() };
        let (source, limit) = (Arc::clone(&self.source), self.options.round_timeout);
        let work = Box::pin(async move {
            let result = tokio::time::timeout(limit, source.claim(round)).await;
            result.unwrap_or(Err(RoundFailed))
        });
        self.desk.demands().in_flight = keys.len();
        self.flight = Some(Flight { work, keys, demands, newest });
    }

    pub(super) fn end_round(&mut self, end: RoundEnd<S>) {
        let Some(flight) = self.flight.take() else { return };
        let now = clock::now();
        let overall = match &end {
            Err(RoundFailed) => Outcome::Failed,
            Ok(result) if !result.leases.is_empty() && result.more.is_empty() => Outcome::UnderFilled,
            Ok(result) if !result.leases.is_empty() => Outcome::Filled,
            Ok(result) if !result.contended.is_empty() => Outcome::Contended,
            Ok(_) => Outcome::Empty,
        };
        let cause = flight.keys.iter().map(|woken| woken.cause).find(|cause| cause.is_announced());
        let cause = cause.or_else(|| flight.keys.first().map(|woken| woken.cause)).unwrap_or(Cause::Asked);
        self.hub.report(Event::RoundEnded { cause, outcome: overall, keys: flight.keys.len() });
        let pause = self.poll_mode.pause();
        // A due time may come from a hint as well, and hints may be forged.
        let hinted = flight.keys.iter().all(|woken| matches!(woken.cause, Cause::Notified | Cause::Due));
        self.gate.round_ended(overall, hinted, now, pause);
        let change = self.poll_mode.round_ended(overall, now);
        self.poll_mode_changed(change, now);
        match end {
            Ok(result) => self.conclude_round(&flight, result, now),
            Err(RoundFailed) => self.put_back(&flight),
        }
        let mut demands = self.desk.demands();
        demands.in_flight = 0;
        demands.backed_off = self.backoffs.len();
    }

    fn conclude_round(&mut self, flight: &Flight<S>, result: RoundResult<S::Key, S::Lease>, now: Instant) {
        self.desk.demands().failing = false;
        let announced_only = as_set(&result.announced_only);
        self.set_dues(flight, &announced_only, result.dues);
        let served = served_keys(&flight.demands, &result.leases);
        let (more, contended) = (as_set(&result.more), as_set(&result.contended));
        let mut exhausted = HashSet::new();
        for WokenKey { key, cause, .. } in &flight.keys {
            let outcome = if more.contains(key) {
                Outcome::Filled
            } else if contended.contains(key) {
                Outcome::Contended
            } else if served.contains(key) {
                Outcome::UnderFilled
            } else {
                Outcome::Empty
            };
            if outcome.shows_no_more() {
                exhausted.insert(key);
            }
            let end = if announced_only.contains(key) { Watch::ended_announced_only } else { Watch::ended };
            if end(&mut self.watch, key, outcome) {
                self.hub.report(Event::Missed { cause: *cause });
            }
            self.conclude_key(key, outcome, now);
        }
        self.hand_out(&flight.demands, result.leases);
        self.answer_impatient(flight, &exhausted, || Answer::Nothing);
    }

    fn conclude_key(&mut self, key: &S::Key, outcome: Outcome, now: Instant) {
        match outcome {
            Outcome::Contended => {
                self.hub.wake_after(key.clone(), DueSource::Announced, self.options.contended_pause);
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

    /// Before any key is called empty: otherwise a due time that comes in between would wake no
    /// demand.
    fn set_dues(
        &self,
        flight: &Flight<S>,
        announced_only: &HashSet<&S::Key>,
        dues: Vec<(S::Key, std::time::Duration)>,
    ) {
        let known: HashSet<&S::Key> = dues.iter().map(|(key, _)| key).chain(announced_only.iter().copied()).collect();
        let without = flight.keys.iter().filter(|woken| !known.contains(&woken.key));
        let without: Vec<S::Key> = without.map(|woken| woken.key.clone()).collect();
        for key in without {
            self.hub.set_due(key, DueSource::Round, None);
        }
        for (key, delay) in dues {
            self.hub.set_due(key, DueSource::Round, Some(delay));
        }
    }

    fn put_back(&mut self, flight: &Flight<S>) {
        self.desk.demands().failing = true;
        for woken in &flight.keys {
            self.watch.ended(&woken.key, Outcome::Failed);
        }
        self.answer_impatient(flight, &HashSet::new(), || Answer::Failed);
    }
}

fn as_set<K: std::hash::Hash + Eq>(keys: &[K]) -> HashSet<&K> {
    keys.iter().collect()
}

/// The keys of the demands that get a lease.
fn served_keys<K: crate::hub::Key, R, L>(demands: &[WaitingDemand<K, R>], leases: &[(DemandId, L)]) -> HashSet<K> {
    let served: HashSet<DemandId> = leases.iter().map(|(id, _)| *id).collect();
    let served = demands.iter().filter(|demand| served.contains(&demand.id));
    served.flat_map(|demand| demand.keys.iter().cloned()).collect()
}
