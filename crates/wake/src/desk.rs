//! Where demands wait in line.
//!
//! Owns every demand of one dispatcher in exactly one state, `Waiting → Assigned → Done`, which
//! changes under one lock. Promises that when a deadline, an answer, a departure and a shutdown
//! meet, exactly one of them takes effect, and that a lease is never dropped here: a lease that
//! cannot be assigned comes back to the caller.
//!
//! Next: [`crate::dispatcher`].

mod attempts;
#[cfg(all(test, shuttle))]
mod races;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Instant;

use attempts::Attempts;

use crate::cause::Cause;
use crate::demand::{Answer, DemandId, Patience};
use crate::poll_mode::PollMode;
use crate::refused::Refused;
use crate::source::{Source, WaitingDemand};
use crate::sync::{Mutex, MutexGuard};

/// The demands, shared between the dispatcher and its handles.
#[derive(Debug)]
pub(crate) struct Desk<S: Source>(Mutex<Demands<S::Key, S::Request, S::Lease>>);

impl<S: Source> Desk<S> {
    pub(crate) fn new(limit: usize) -> Self {
        Self(Mutex::new(Demands::new(limit)))
    }

    pub(crate) fn demands(&self) -> MutexGuard<'_, Demands<S::Key, S::Request, S::Lease>> {
        self.0.lock()
    }
}

/// The state of a demand. A demand that is done is no longer on the desk.
enum State<L> {
    Waiting,
    Assigned(Answer<L>),
}

struct Demand<K, R, L> {
    keys: Arc<[K]>,
    request: Arc<R>,
    patience: Patience,
    since: Instant,
    state: State<L>,
    waker: Option<Waker>,
}

/// What changed since the dispatcher last took the changes.
pub(crate) struct Changes<K, L> {
    /// The keys and the patience of each demand that arrived.
    pub(crate) arrived: Vec<(Arc<[K]>, Patience)>,
    /// Keys whose first demand came or whose last one left.
    pub(crate) touched: Vec<K>,
    /// Leases that were assigned and never taken, with the keys of their demand.
    pub(crate) returned: Vec<(Arc<[K]>, L)>,
}

impl<K, L> Changes<K, L> {
    const fn new() -> Self {
        Self { arrived: Vec::new(), touched: Vec::new(), returned: Vec::new() }
    }

    const fn is_empty(&self) -> bool {
        self.arrived.is_empty() && self.touched.is_empty() && self.returned.is_empty()
    }
}

pub(crate) struct Demands<K, R, L> {
    limit: usize,
    ids: u64,
    all: BTreeMap<DemandId, Demand<K, R, L>>,
    /// The demands that wait, by key, the one that has waited longest first.
    waiting: HashMap<K, BTreeSet<DemandId>>,
    deadlines: BTreeSet<(Instant, DemandId)>,
    /// The demands that wait for one claim round only.
    impatient: BTreeSet<DemandId>,
    /// The demands that were woken and have not made their own attempt. Empty unless the policy is
    /// broadcast.
    attempts: Attempts,
    changes: Changes<K, L>,
    dispatcher: Option<Waker>,
    /// The latest claim round failed, so an expiring demand cannot be answered "nothing".
    pub(crate) failing: bool,
    pub(crate) poll_mode: PollMode,
    /// How many keys are in the round under way.
    pub(crate) in_flight: usize,
    /// How many keys fallback polling leaves alone for now.
    pub(crate) backed_off: usize,
    closed: bool,
}

impl<K: crate::hub::Key, R, L> Demands<K, R, L> {
    fn new(limit: usize) -> Self {
        Self {
            limit,
            ids: 0,
            all: BTreeMap::new(),
            waiting: HashMap::new(),
            deadlines: BTreeSet::new(),
            impatient: BTreeSet::new(),
            attempts: Attempts::default(),
            changes: Changes::new(),
            dispatcher: None,
            failing: false,
            poll_mode: PollMode::Long,
            in_flight: 0,
            backed_off: 0,
            closed: false,
        }
    }

    /// Puts a demand in line. Wake the waker, if any: it is the dispatcher's.
    pub(crate) fn request(
        &mut self,
        keys: Arc<[K]>,
        request: R,
        patience: Patience,
        since: Instant,
    ) -> Result<(DemandId, Option<Waker>), Refused> {
        if self.closed {
            return Err(Refused::Closed);
        }
        // Changes count too: a client that comes and goes faster than the dispatcher runs must not
        // fill the memory.
        if self.all.len().max(self.changes.arrived.len()) >= self.limit {
            return Err(Refused::Waiters { limit: self.limit });
        }
        self.ids += 1;
        let id = DemandId(self.ids);
        for key in keys.iter() {
            self.join(key, id);
        }
        match patience {
            Patience::Until(at) => self.deadlines.insert((at, id)),
            Patience::Now => self.impatient.insert(id),
        };
        self.changes.arrived.push((Arc::clone(&keys), patience));
        let request = Arc::new(request);
        self.all.insert(id, Demand { keys, request, patience, since, state: State::Waiting, waker: None });
        Ok((id, self.dispatcher.take()))
    }

    /// Takes the answer of a demand for its client.
    pub(crate) fn take_answer(&mut self, id: DemandId, waker: &Waker) -> Poll<Answer<L>> {
        let Some(demand) = self.all.get_mut(&id) else { return Poll::Ready(Answer::Closed) };
        if matches!(demand.state, State::Waiting) {
            demand.waker = Some(waker.clone());
            return Poll::Pending;
        }
        match self.all.remove(&id).map(|demand| demand.state) {
            Some(State::Assigned(answer)) => Poll::Ready(answer),
            Some(State::Waiting) | None => Poll::Ready(Answer::Closed),
        }
    }

    /// The client has gone. A lease it never took comes back with the changes.
    pub(crate) fn withdraw(&mut self, id: DemandId) -> Option<Waker> {
        let demand = self.all.remove(&id)?;
        match demand.state {
            State::Waiting => self.leave_line(id, &demand.keys, demand.patience),
            State::Assigned(Answer::Lease(lease)) => self.changes.returned.push((demand.keys, lease)),
            State::Assigned(_) => return None,
        }
        self.dispatcher.take()
    }

    /// Answers a demand that waits. Otherwise the answer comes back.
    pub(crate) fn assign(&mut self, id: DemandId, answer: Answer<L>) -> Result<Option<Waker>, Answer<L>> {
        let Some(demand) = self.all.get_mut(&id).filter(|demand| matches!(demand.state, State::Waiting)) else {
            return Err(answer);
        };
        demand.state = State::Assigned(answer);
        let waker = demand.waker.take();
        let (keys, patience) = (Arc::clone(&demand.keys), demand.patience);
        self.leave_line(id, &keys, patience);
        Ok(waker)
    }

    /// Answers every demand whose time is up.
    pub(crate) fn expire(&mut self, now: Instant) -> Vec<Waker> {
        let mut wakers = Vec::new();
        while let Some((at, id)) = self.deadlines.first().copied() {
            if at > now {
                break;
            }
            self.deadlines.pop_first();
            let answer = if self.failing { Answer::Failed } else { Answer::Nothing };
            wakers.extend(self.assign(id, answer).ok().flatten());
        }
        wakers
    }

    /// Answers all demands with "closed", and takes no more.
    pub(crate) fn close(&mut self) -> Vec<Waker> {
        self.closed = true;
        let ids: Vec<DemandId> = self.all.keys().copied().collect();
        ids.into_iter().filter_map(|id| self.assign(id, Answer::Closed).ok().flatten()).collect()
    }

    /// Takes the changes. If there are none, the dispatcher is woken by the next one.
    pub(crate) fn poll_changes(&mut self, waker: &Waker) -> Poll<Changes<K, L>> {
        if self.changes.is_empty() {
            self.dispatcher = Some(waker.clone());
            return Poll::Pending;
        }
        Poll::Ready(self.take_changes())
    }

    pub(crate) fn take_changes(&mut self) -> Changes<K, L> {
        std::mem::replace(&mut self.changes, Changes::new())
    }

    pub(crate) fn is_waited(&self, key: &K) -> bool {
        self.waiting.contains_key(key)
    }

    pub(crate) fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// How many keys have demands.
    pub(crate) fn keys(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// Up to `limit` of the demands that wait under any of the keys, the one that has waited
    /// longest first.
    pub(crate) fn waiting_under<'a>(&self, keys: impl Iterator<Item = &'a K>, limit: usize) -> Vec<WaitingDemand<K, R>>
    where
        K: 'a,
    {
        // The first `limit` of all are among the first `limit` of each: a long line costs no more
        // than a short one.
        let lines = keys.filter_map(|key| self.waiting.get(key));
        let ids: BTreeSet<DemandId> = lines.flat_map(|line| line.iter().take(limit)).copied().collect();
        ids.into_iter().take(limit).filter_map(|id| self.waiting(id)).collect()
    }

    /// Every demand that waits under the key must make a claim attempt of its own.
    pub(crate) fn owe_attempts(&mut self, key: &K, cause: Cause) {
        for id in self.waiting.get(key).into_iter().flatten() {
            self.attempts.owe(*id, cause);
        }
    }

    /// The demand whose attempt is next, and the cause of its wake.
    pub(crate) fn next_attempt(&mut self) -> Option<(WaitingDemand<K, R>, Cause)> {
        let (id, cause) = self.attempts.next()?;
        Some((self.waiting(id)?, cause))
    }

    /// The latest demand so far.
    pub(crate) const fn newest(&self) -> DemandId {
        DemandId(self.ids)
    }

    /// The demands up to `newest` that wait for one claim round only, with their keys.
    pub(crate) fn impatient(&self, newest: DemandId) -> Vec<(DemandId, Arc<[K]>)> {
        let ids = self.impatient.range(..=newest);
        ids.filter_map(|id| Some((*id, Arc::clone(&self.all.get(id)?.keys)))).collect()
    }

    fn waiting(&self, id: DemandId) -> Option<WaitingDemand<K, R>> {
        let demand = self.all.get(&id)?;
        let (keys, request) = (Arc::clone(&demand.keys), Arc::clone(&demand.request));
        Some(WaitingDemand { id, keys, request, since: demand.since })
    }

    fn join(&mut self, key: &K, id: DemandId) {
        let line = self.waiting.entry(key.clone()).or_default();
        if line.is_empty() {
            self.changes.touched.push(key.clone());
        }
        line.insert(id);
    }

    fn leave_line(&mut self, id: DemandId, keys: &[K], patience: Patience) {
        match patience {
            Patience::Until(at) => self.deadlines.remove(&(at, id)),
            Patience::Now => self.impatient.remove(&id),
        };
        self.attempts.remove(id);
        for key in keys {
            let Some(line) = self.waiting.get_mut(key) else { continue };
            line.remove(&id);
            if line.is_empty() {
                self.waiting.remove(key);
                self.changes.touched.push(key.clone());
            }
        }
    }
}

impl<K, R, L> std::fmt::Debug for Demands<K, R, L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (all, mode) = (self.all.len(), &self.poll_mode);
        f.debug_struct("Demands").field("all", &all).field("poll_mode", mode).finish_non_exhaustive()
    }
}
