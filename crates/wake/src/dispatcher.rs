//! The one loop behind every interface.
//!
//! Owns the demands of one service, the keys they wait for, and the claim round under way. Promises
//! that keys are armed before they are claimed from, that a wake is cleared before the claim it
//! causes, that deadlines fire while a round runs, and that a lease whose demand has gone reaches
//! another demand or is given back. One round serves every demand that can use it, unless the
//! policy is broadcast. There is one round at a time: demands that arrive meanwhile wait for the
//! next. The claim itself is the [`Source`]'s.
//!
//! Next: [`crate::demand`], the client's side.

mod hand_out;
mod handle;
mod options;
mod round;

use std::collections::HashMap;
use std::future::{Future, pending, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::watch as channel;

pub use handle::{DispatcherHandle, KeyCounts};
pub use options::{DispatcherOptions, Policy};
use round::Flight;

use crate::backoff::Backoff;
use crate::cause::Cause;
use crate::clock;
use crate::demand::{Answer, Patience};
use crate::desk::{Changes, Desk};
use crate::gate::Gate;
use crate::hub::{Hub, Watch};
use crate::link::Link;
use crate::observe::Event;
use crate::poll_mode::{PollModeChange, PollModeState};
use crate::source::{RoundFailed, RoundResult, Source};

type Work<T> = Pin<Box<dyn Future<Output = T> + Send>>;
type RoundEnd<S> = Result<RoundResult<<S as Source>::Key, <S as Source>::Lease>, RoundFailed>;

/// Claims from one source for all demands of a service, and hands out the leases.
pub struct Dispatcher<S: Source> {
    source: Arc<S>,
    hub: Hub<S::Key>,
    desk: Arc<Desk<S>>,
    options: DispatcherOptions,
    watch: Watch<S::Key>,
    link: channel::Receiver<Link>,
    poll_mode: PollModeState,
    gate: Gate,
    backoffs: HashMap<S::Key, Backoff>,
    /// Keys to claim from for new demands, though nothing woke them.
    wanted: HashMap<S::Key, Cause>,
    flight: Option<Flight<S>>,
    /// Leases whose demand has gone, to be given back.
    lost: Vec<S::Lease>,
    releasing: Option<Work<()>>,
    /// When it claims from every key without being woken.
    tick_at: Instant,
}

/// Everything that can happen to a dispatcher.
enum Turn<S: Source> {
    /// Demands came or went, or a lease came back.
    Demands(Changes<S::Key, S::Lease>),
    /// A key is woken and may be claimed from.
    Woken,
    /// The round under way ended.
    RoundEnded(RoundEnd<S>),
    /// The release under way ended.
    Released,
    /// The link changed.
    Link(Link),
    /// A deadline, the time of a round that nothing woke, or the end of a pause.
    Timer,
}

impl<S: Source> Dispatcher<S> {
    /// A dispatcher, and the handle for demands. Due times wake only while the hub's
    /// [`Runner`](crate::Runner) runs too.
    pub fn new(hub: &Hub<S::Key>, source: S, options: DispatcherOptions) -> (Self, DispatcherHandle<S>) {
        let now = clock::now();
        let desk = Arc::new(Desk::new(options.max_demands));
        let link = hub.follow_link();
        let poll_mode = PollModeState::new(options.poll_mode, *link.borrow(), now);
        desk.demands().poll_mode = poll_mode.mode();
        let handle = DispatcherHandle::new(Arc::clone(&desk), hub.clone(), options.clone());
        let mut dispatcher = Self {
            source: Arc::new(source),
            hub: hub.clone(),
            desk,
            watch: hub.watch(),
            link,
            poll_mode,
            gate: Gate::default(),
            backoffs: HashMap::new(),
            wanted: HashMap::new(),
            flight: None,
            lost: Vec::new(),
            releasing: None,
            tick_at: now,
            options,
        };
        dispatcher.schedule_tick(now);
        (dispatcher, handle)
    }

    /// Runs until `shutdown` is ready. Then it answers all demands with [`Answer::Closed`], lets
    /// the round under way end, and gives back what that claimed.
    pub async fn run(mut self, shutdown: impl Future<Output = ()>) {
        tokio::pin!(shutdown);
        while let Some(turn) = self.next_turn(shutdown.as_mut()).await {
            match turn {
                Turn::Demands(changes) => self.follow_demands(changes),
                Turn::RoundEnded(end) => self.end_round(end),
                Turn::Released => self.releasing = None,
                Turn::Link(link) => self.follow_link(link),
                Turn::Woken | Turn::Timer => {}
            }
            self.expire();
            self.claim_if_needed();
            self.release_lost();
        }
        self.wind_down().await;
    }

    /// The next thing that happens. Every future in it is safe to drop: the work they wait for is
    /// kept in the dispatcher.
    async fn next_turn(&mut self, shutdown: Pin<&mut impl Future<Output = ()>>) -> Option<Turn<S>> {
        let now = clock::now();
        let may_claim = self.flight.is_none() && self.gate.opens_at(now).is_none();
        let timer = self.next_timer(now);
        let Self { desk, watch, link, flight, releasing, .. } = self;
        tokio::select! {
            biased;
            () = shutdown => None,
            end = in_flight(flight.as_mut().map(|flight| &mut flight.work)) => Some(Turn::RoundEnded(end)),
            () = in_flight(releasing.as_mut()) => Some(Turn::Released),
            link = next_link(link) => Some(Turn::Link(link)),
            // After the end of a round, so that a stream of new demands cannot delay its leases.
            // Before the wakes, so that keys without demands are disarmed and not claimed from.
            changes = poll_fn(|context| desk.demands().poll_changes(context.waker())) => Some(Turn::Demands(changes)),
            () = watch.woken(), if may_claim => Some(Turn::Woken),
            () = until(timer) => Some(Turn::Timer),
        }
    }

    fn next_timer(&self, now: Instant) -> Option<Instant> {
        let demands = self.desk.demands();
        let tick = (demands.waits() && self.flight.is_none()).then_some(self.tick_at);
        let gate = if self.flight.is_none() { self.gate.opens_at(now) } else { None };
        // While the gate is shut, only a deadline can be served before it opens.
        let tick = tick.map(|at| gate.map_or(at, |opens| at.max(opens)));
        [demands.next_deadline(), tick, gate].into_iter().flatten().min()
    }

    fn follow_demands(&mut self, changes: Changes<S::Key, S::Lease>) {
        for key in changes.touched {
            let waited = self.desk.demands().is_waited(&key);
            if waited {
                self.arm(&key);
            } else {
                self.watch.disarm(&key);
                self.wanted.remove(&key);
                self.backoffs.remove(&key);
            }
        }
        for (keys, patience) in changes.arrived {
            for key in keys.iter() {
                self.want(key, patience);
            }
        }
        for (keys, lease) in changes.returned {
            self.offer(&keys, lease);
        }
    }

    /// A new demand needs a round, unless it can wait and its key is known to be empty.
    fn want(&mut self, key: &S::Key, patience: Patience) {
        if !self.watch.is_armed(key) {
            return; // the demand has gone already, or was refused
        }
        match patience {
            Patience::Now => _ = self.wanted.insert(key.clone(), Cause::Asked),
            Patience::Until(_) => _ = self.wanted.entry(key.clone()).or_insert(Cause::Started),
        }
    }

    fn arm(&mut self, key: &S::Key) {
        let Err(refused) = self.watch.arm(key.clone()) else { return };
        let mut demands = self.desk.demands();
        let mut wakers = Vec::new();
        for demand in demands.waiting_under(std::iter::once(key), usize::MAX) {
            wakers.extend(demands.assign(demand.id, Answer::Refused(refused)).ok().flatten());
        }
        drop(demands);
        wakers.into_iter().for_each(std::task::Waker::wake);
    }

    fn follow_link(&mut self, link: Link) {
        let now = clock::now();
        if link.is_proven() {
            self.gate.open();
        }
        let change = self.poll_mode.follow(link, now);
        self.poll_mode_changed(change, now);
    }

    fn poll_mode_changed(&mut self, change: Option<PollModeChange>, now: Instant) {
        let Some(change) = change else { return };
        self.desk.demands().poll_mode = change.to;
        self.schedule_tick(now);
        self.hub.report(Event::PollMode(change));
    }

    /// Only a round over all keys postpones this: a busy key must not keep the others from being
    /// claimed from.
    fn schedule_tick(&mut self, now: Instant) {
        let fallback = self.options.fallback_interval;
        self.tick_at = clock::after(now, self.poll_mode.interval().unwrap_or(fallback));
    }

    fn expire(&mut self) {
        let wakers = self.desk.demands().expire(clock::now());
        wakers.into_iter().for_each(std::task::Waker::wake);
    }

    fn release_lost(&mut self) {
        if self.lost.is_empty() || self.releasing.is_some() {
            return;
        }
        let (source, leases) = (Arc::clone(&self.source), std::mem::take(&mut self.lost));
        for _ in &leases {
            self.hub.report(Event::Returned);
        }
        let limit = self.options.round_timeout;
        // A release that hangs is dropped: the leases end by themselves.
        self.releasing = Some(Box::pin(async move { drop(tokio::time::timeout(limit, source.release(leases)).await) }));
    }

    async fn wind_down(&mut self) {
        self.close();
        if let Some(flight) = self.flight.as_mut() {
            let end = (&mut flight.work).await;
            self.end_round(end);
        }
        let returned = self.desk.demands().take_changes().returned;
        self.lost.extend(returned.into_iter().map(|(_, lease)| lease));
        if let Some(releasing) = self.releasing.take() {
            releasing.await;
        }
        self.release_lost();
        if let Some(releasing) = self.releasing.take() {
            releasing.await;
        }
    }

    fn close(&mut self) {
        let wakers = self.desk.demands().close();
        wakers.into_iter().for_each(std::task::Waker::wake);
    }
}

/// However it ends (by shutdown, by a panic, dropped), no demand waits for an answer that cannot
/// come.
impl<S: Source> Drop for Dispatcher<S> {
    fn drop(&mut self) {
        self.close();
    }
}

impl<S: Source> std::fmt::Debug for Dispatcher<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dispatcher").field("poll_mode", &self.poll_mode.mode()).finish_non_exhaustive()
    }
}

async fn in_flight<T>(work: Option<&mut Work<T>>) -> T {
    match work {
        Some(work) => work.await,
        None => pending().await,
    }
}

async fn next_link(link: &mut channel::Receiver<Link>) -> Link {
    match link.changed().await {
        Ok(()) => *link.borrow_and_update(),
        Err(_) => pending().await, // the hub is gone, and with it every change
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(clock::timer(at)).await,
        None => pending().await,
    }
}
