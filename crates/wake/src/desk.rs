//! Where demands wait in line.
//!
//! Owns every demand of one dispatcher in exactly one state, `Waiting → Assigned → Done`, changed
//! under one lock and once. Promises that a deadline, an answer, a departure and a shutdown that
//! meet produce one of them, never two, and that a lease is never dropped here: what cannot be
//! assigned comes back to the caller.
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

/// A demand's state; `Done` is to be gone from the desk.
enum Stand<L> {
    Waiting,
    Assigned(Answer<L>),
}

struct Demand<K, A, L> {
    keys: Arc<[K]>,
    request: Arc<A>,
    patience: Patience,
    since: Instant,
    stand: Stand<L>,
    waker: Option<Waker>,
}

/// What changed since the dispatcher last asked.
pub(crate) struct Changes<K, L> {
    /// Arrived, under these keys.
    pub(crate) arrived: Vec<(Arc<[K]>, Patience)>,
    /// Keys whose first demand came or whose last one went.
    pub(crate) touched: Vec<K>,
    /// Leases that were assigned and never taken, with the keys they were claimed under.
    pub(crate) returned: Vec<(Arc<[K]>, L)>,
}

impl<K, L> Changes<K, L> {
    const fn none() -> Self {
        Self { arrived: Vec::new(), touched: Vec::new(), returned: Vec::new() }
    }

    const fn is_none(&self) -> bool {
        self.arrived.is_empty() && self.touched.is_empty() && self.returned.is_empty()
    }
}

pub(crate) struct Demands<K, A, L> {
    limit: usize,
    ids: u64,
    all: BTreeMap<DemandId, Demand<K, A, L>>,
    /// Those that wait, by key, the one that has waited longest first.
    waiting: HashMap<K, BTreeSet<DemandId>>,
    deadlines: BTreeSet<(Instant, DemandId)>,
    /// Those that wait for one claim round only.
    impatient: BTreeSet<DemandId>,
    /// Those that were woken and have not made their own attempt; empty unless the policy is
    /// broadcast.
    attempts: Attempts,
    changes: Changes<K, L>,
    dispatcher: Option<Waker>,
    /// The latest claim round failed, so an expiring demand cannot be answered "nothing".
    pub(crate) failing: bool,
    pub(crate) poll_mode: PollMode,
    /// Keys of the round under way, and keys that fallback polling leaves alone for now.
    pub(crate) in_flight: usize,
    pub(crate) backed_off: usize,
    closed: bool,
}

impl<K: crate::hub::Key, A, L> Demands<K, A, L> {
    fn new(limit: usize) -> Self {
        Self {
            limit,
            ids: 0,
            all: BTreeMap::new(),
            waiting: HashMap::new(),
            deadlines: BTreeSet::new(),
            impatient: BTreeSet::new(),
            attempts: Attempts::default(),
            changes: Changes::none(),
            dispatcher: None,
            failing: false,
            poll_mode: PollMode::Long,
            in_flight: 0,
            backed_off: 0,
            closed: false,
        }
    }

    /// Puts a demand in line. The waker, if any, is the dispatcher's.
    pub(crate) fn request(
        &mut self,
        keys: Arc<[K]>,
        request: A,
        patience: Patience,
        since: Instant,
    ) -> Result<(DemandId, Option<Waker>), Refused> {
        if self.closed {
            return Err(Refused::Closed);
        }
        // News counts too: a client that comes and goes faster than the dispatcher runs must not
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
        self.all.insert(id, Demand { keys, request, patience, since, stand: Stand::Waiting, waker: None });
        Ok((id, self.dispatcher.take()))
    }

    /// The client asks for its answer.
    pub(crate) fn take_answer(&mut self, id: DemandId, waker: &Waker) -> Poll<Answer<L>> {
        let Some(demand) = self.all.get_mut(&id) else { return Poll::Ready(Answer::Closed) };
        if matches!(demand.stand, Stand::Waiting) {
            demand.waker = Some(waker.clone());
            return Poll::Pending;
        }
        match self.all.remove(&id).map(|demand| demand.stand) {
            Some(Stand::Assigned(answer)) => Poll::Ready(answer),
            Some(Stand::Waiting) | None => Poll::Ready(Answer::Closed),
        }
    }

    /// The client is gone. A lease it never took comes back.
    pub(crate) fn withdraw(&mut self, id: DemandId) -> Option<Waker> {
        let demand = self.all.remove(&id)?;
        match demand.stand {
            Stand::Waiting => self.leave_line(id, &demand.keys, demand.patience),
            Stand::Assigned(Answer::Lease(lease)) => self.changes.returned.push((demand.keys, lease)),
            Stand::Assigned(_) => return None,
        }
        self.dispatcher.take()
    }

    /// Answers a demand that waits; anything else gives the answer back.
    pub(crate) fn assign(&mut self, id: DemandId, answer: Answer<L>) -> Result<Option<Waker>, Answer<L>> {
        let Some(demand) = self.all.get_mut(&id).filter(|demand| matches!(demand.stand, Stand::Waiting)) else {
            return Err(answer);
        };
        demand.stand = Stand::Assigned(answer);
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

    /// Answers everybody with "closed", and takes no more.
    pub(crate) fn close(&mut self) -> Vec<Waker> {
        self.closed = true;
        let ids: Vec<DemandId> = self.all.keys().copied().collect();
        ids.into_iter().filter_map(|id| self.assign(id, Answer::Closed).ok().flatten()).collect()
    }

    /// What changed, if anything; otherwise the dispatcher is woken when something does.
    pub(crate) fn poll_changes(&mut self, waker: &Waker) -> Poll<Changes<K, L>> {
        if self.changes.is_none() {
            self.dispatcher = Some(waker.clone());
            return Poll::Pending;
        }
        Poll::Ready(self.take_changes())
    }

    pub(crate) fn take_changes(&mut self) -> Changes<K, L> {
        std::mem::replace(&mut self.changes, Changes::none())
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

    /// How many keys somebody waits under.
    pub(crate) fn keys(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// Up to `limit` of those that wait under any of the keys, the one that has waited longest
    /// first.
    pub(crate) fn waiting_under<'a>(&self, keys: impl Iterator<Item = &'a K>, limit: usize) -> Vec<WaitingDemand<K, A>>
    where
        K: 'a,
    {
        // The first `limit` of all are among the first `limit` of each: a long line costs no more
        // than a short one.
        let lines = keys.filter_map(|key| self.waiting.get(key));
        let ids: BTreeSet<DemandId> = lines.flat_map(|line| line.iter().take(limit)).copied().collect();
        ids.into_iter().take(limit).filter_map(|id| self.waiting(id)).collect()
    }

    /// Every demand that waits under the key owes a claim attempt of its own.
    pub(crate) fn owe_attempts(&mut self, key: &K, cause: Cause) {
        for id in self.waiting.get(key).into_iter().flatten() {
            self.attempts.owe(*id, cause);
        }
    }

    /// The demand whose attempt is next, and why it was woken.
    pub(crate) fn next_attempt(&mut self) -> Option<(WaitingDemand<K, A>, Cause)> {
        let (id, cause) = self.attempts.next()?;
        Some((self.waiting(id)?, cause))
    }

    /// The latest demand so far.
    pub(crate) const fn newest(&self) -> DemandId {
        DemandId(self.ids)
    }

    /// Those up to `newest` that wait for one claim round only, and still wait, with their keys.
    pub(crate) fn impatient(&self, newest: DemandId) -> Vec<(DemandId, Arc<[K]>)> {
        let ids = self.impatient.range(..=newest);
        ids.filter_map(|id| Some((*id, Arc::clone(&self.all.get(id)?.keys)))).collect()
    }

    fn waiting(&self, id: DemandId) -> Option<WaitingDemand<K, A>> {
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

impl<K, A, L> std::fmt::Debug for Demands<K, A, L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Demands").field("all", &self.all.len()).field("pace", &self.poll_mode).finish_non_exhaustive()
    }
}
