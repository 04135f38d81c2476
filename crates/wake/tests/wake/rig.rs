//! A dispatcher over a queue in memory, and what it did.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use reveille_wake::{
    Answer, Cause, Counters, Dispatcher, DispatcherHandle, DispatcherOptions, FallbackCauses, Hub, HubOptions, Link,
    Patience, PollModeOptions, Round, RoundFailed, RoundResult, Source, Ticket,
};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinSet;

/// The fallback polling of an earlier design: for every cause, for a minute, every 50 ms.
pub(crate) const SEED_001: PollModeOptions = PollModeOptions {
    causes: FallbackCauses::SEED_001,
    minimum: secs(60),
    shortest: ms(50),
    longest: ms(50),
    ..PollModeOptions::DEFAULT
};

pub(crate) type Key = &'static str;
pub(crate) type Row = u32;

pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) fn proven() -> Link {
    Link::Proven { since: now() }
}

/// Lets every other task run until it waits for something. Their timers stand still: the clock is
/// paused, and this task is never idle.
pub(crate) async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

/// A queue in memory.
#[derive(Clone, Default)]
pub(crate) struct Store(Arc<Mutex<Inside>>, Arc<Notify>);

#[derive(Default)]
struct Inside {
    ready: HashMap<Key, VecDeque<Row>>,
    later: Vec<(Instant, Key, Row)>,
    held: HashSet<Key>,
    rounds: Vec<(Instant, Vec<(Key, Cause)>)>,
    round_sizes: Vec<usize>,
    released: Vec<Row>,
    fails: bool,
    stalls: bool,
    transferable: bool,
}

impl Store {
    fn inside(&self) -> std::sync::MutexGuard<'_, Inside> {
        self.0.lock().expect("no test panics in here")
    }

    pub(crate) fn put(&self, key: Key, rows: impl IntoIterator<Item = Row>) {
        self.inside().ready.entry(key).or_default().extend(rows);
    }

    pub(crate) fn put_later(&self, key: Key, row: Row, delay: Duration) {
        self.inside().later.push((now() + delay, key, row));
    }

    pub(crate) fn fail(&self, fails: bool) {
        self.inside().fails = fails;
    }

    /// Rounds do not end until [`Store::go_on`].
    pub(crate) fn stall(&self) {
        self.inside().stalls = true;
    }

    pub(crate) fn go_on(&self) {
        self.inside().stalls = false;
        self.1.notify_waiters();
    }

    /// Another claim has the rows of the key locked.
    pub(crate) fn hold(&self, key: Key) {
        self.inside().held.insert(key);
    }

    pub(crate) fn let_go(&self, key: Key) {
        self.inside().held.remove(key);
    }

    pub(crate) fn make_transferable(&self) {
        self.inside().transferable = true;
    }

    pub(crate) fn rounds(&self) -> usize {
        self.inside().rounds.len()
    }

    pub(crate) fn rounds_of(&self, key: Key) -> Vec<(Instant, Cause)> {
        let inside = self.inside();
        let of_key = |round: &(Instant, Vec<(Key, Cause)>)| {
            round.1.iter().find(|(claimed, _)| *claimed == key).map(|(_, cause)| (round.0, *cause))
        };
        inside.rounds.iter().filter_map(of_key).collect()
    }

    /// For how many demands each round was.
    pub(crate) fn round_sizes(&self) -> Vec<usize> {
        self.inside().round_sizes.clone()
    }

    pub(crate) fn released(&self) -> Vec<Row> {
        self.inside().released.clone()
    }
}

impl Source for Store {
    type Key = Key;
    type Request = ();
    type Lease = Row;

    async fn claim(&self, round: Round<Key, ()>) -> Result<RoundResult<Key, Row>, RoundFailed> {
        let keys: Vec<(Key, Cause)> = round.keys.iter().map(|woken| (woken.key, woken.cause)).collect();
        self.inside().rounds.push((now(), keys));
        self.inside().round_sizes.push(round.demands.len());
        let result = self.inside().claim(&round);
        loop {
            let gone_on = self.1.notified();
            if !self.inside().stalls {
                break;
            }
            gone_on.await;
        }
        if self.inside().fails { Err(RoundFailed) } else { Ok(result) }
    }

    async fn release(&self, leases: Vec<Row>) {
        self.inside().released.extend(leases);
    }

    fn suits(&self, _lease: &Row, _request: &()) -> bool {
        self.inside().transferable
    }
}

impl Inside {
    fn claim(&mut self, round: &Round<Key, ()>) -> RoundResult<Key, Row> {
        let mut result = RoundResult::default();
        if self.fails {
            return result;
        }
        let now = now();
        for (at, key, row) in std::mem::take(&mut self.later) {
            if at <= now {
                self.ready.entry(key).or_default().push_back(row);
            } else {
                self.later.push((at, key, row));
            }
        }
        let free = |key: &Key| round.keys.iter().any(|woken| woken.key == *key) && !self.held.contains(key);
        for demand in &round.demands {
            let mut keys = demand.keys.iter().copied().filter(free);
            let key = keys.find(|key| self.ready.get(key).is_some_and(|rows| !rows.is_empty()));
            let row = key.and_then(|key| self.ready.get_mut(key)?.pop_front());
            result.leases.extend(row.map(|row| (demand.id, row)));
        }
        for woken in &round.keys {
            let rest = self.ready.get(woken.key).is_some_and(|rows| !rows.is_empty());
            if rest && self.held.contains(woken.key) {
                result.contended.push(woken.key);
            } else if rest {
                result.more.push(woken.key);
            }
            let next = self.later.iter().filter(|later| later.1 == woken.key).map(|later| later.0).min();
            result.dues.extend(next.map(|at| (woken.key, at - now)));
        }
        result
    }
}

/// A running dispatcher.
pub(crate) struct Rig {
    pub(crate) hub: Hub<Key>,
    pub(crate) store: Store,
    pub(crate) handle: DispatcherHandle<Store>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) tasks: JoinSet<()>,
    stop: Option<oneshot::Sender<()>>,
}

impl Rig {
    /// With a proven link and the default options.
    pub(crate) async fn new() -> Self {
        Self::with(DispatcherOptions::default(), true).await
    }

    pub(crate) async fn with(options: DispatcherOptions, linked: bool) -> Self {
        let counters = Arc::new(Counters::default());
        let (hub, runner) = Hub::new(HubOptions::default().observer(counters.clone()));
        if linked {
            hub.set_link(proven());
        }
        let store = Store::default();
        let (dispatcher, handle) = Dispatcher::new(&hub, store.clone(), options);
        let (stop, stopped) = oneshot::channel();
        let mut tasks = JoinSet::new();
        tasks.spawn(runner.run(std::future::pending()));
        tasks.spawn(dispatcher.run(async move { drop(stopped.await) }));
        settle().await;
        Self { hub, store, handle, counters, tasks, stop: Some(stop) }
    }

    pub(crate) fn request(&self, key: Key, patience: Duration) -> Ticket<Store> {
        self.handle.request([key], (), Patience::Until(now() + patience)).expect("there is room")
    }

    pub(crate) fn request_now(&self, key: Key) -> Ticket<Store> {
        self.handle.request([key], (), Patience::Now).expect("there is room")
    }

    pub(crate) fn push(&self, key: Key, rows: impl IntoIterator<Item = Row>) {
        self.store.put(key, rows);
        self.hub.wake(&key, Cause::Pushed);
    }

    pub(crate) fn stop(&mut self) {
        drop(self.stop.take());
    }
}

pub(crate) fn leases(answers: Vec<Answer<Row>>) -> Vec<Row> {
    let lease = |answer| match answer {
        Answer::Lease(row) => Some(row),
        _ => None,
    };
    answers.into_iter().filter_map(lease).collect()
}
