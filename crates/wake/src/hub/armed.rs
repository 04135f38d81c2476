//! Arm, look, wait: one waiter of one key.
//!
//! Owns a waiter for as long as it lives. Promises that it cannot be used in the wrong order: an armed key that is not
//! known to be empty reports itself rung, so the first [`wait`](Armed::wait) says "look"; a [`Look`] that is dropped puts
//! its ring back; an [`Armed`] that is dropped hands on what it was given. Every future here may be dropped at any await.
//!
//! Next: [`super::runner`].

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use super::board::{Sink, WaiterAt};
use super::entry::{Began, WaiterId};
use super::{Hub, Key};
use crate::cause::Cause;
use crate::clock;
use crate::observe::Event;
use crate::outcome::Outcome;
use crate::refused::Refused;

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// Look now, for this reason.
    Woken(Cause),
    /// Nobody rang in time.
    TimedOut,
}

/// The right to be woken for a key.
#[derive(Debug)]
#[must_use = "dropping it ends the wait"]
pub struct Armed<K: Key> {
    hub: Hub<K>,
    key: K,
    id: WaiterId,
    /// Why the next look is made if nothing rings.
    unrung: Cause,
}

impl<K: Key> Armed<K> {
    pub(super) fn new(hub: Hub<K>, key: K) -> Result<Self, Refused> {
        let id = hub.board().arm(&key, Sink::Task(None), clock::now())?;
        Ok(Self { hub, key, id, unrung: Cause::Asked })
    }

    /// The key.
    pub const fn key(&self) -> &K {
        &self.key
    }

    /// Whether a look is due now. Not so for a newcomer whose key was looked at and found empty since its last ring while
    /// the link was proven.
    pub fn must_look(&self) -> bool {
        self.hub.board().must_look(&self.key, self.id)
    }

    /// Sleeps until the key is rung, or until `until`. Returns at once if it was rung since the last look began.
    pub async fn wait(&mut self, until: Instant) -> Waited {
        if let Ok(cause) = tokio::time::timeout_at(clock::timer(until), self.rung()).await {
            return Waited::Woken(cause);
        }
        self.unrung = Cause::Fallback;
        Waited::TimedOut
    }

    /// Sleeps until the key is rung, however long that takes.
    pub fn rung(&mut self) -> Rung<'_, K> {
        Rung { armed: self, parked: false }
    }

    /// Begins a look. It answers every ring so far; those that come later need another.
    pub fn look(&mut self) -> Look<'_, K> {
        let began = self.hub.board().begin(&self.key, self.id, self.unrung);
        Look { armed: self, began }
    }
}

impl<K: Key> Drop for Armed<K> {
    fn drop(&mut self) {
        let wakes = self.hub.board().disarm(&self.key, self.id, clock::now());
        wakes.wake();
    }
}

/// A sleep that ends with a ring.
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct Rung<'a, K: Key> {
    armed: &'a mut Armed<K>,
    parked: bool,
}

impl<K: Key> Future for Rung<'_, K> {
    type Output = Cause;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Cause> {
        let Armed { hub, key, id, .. } = &*self.armed;
        let mut board = hub.board();
        let rung = board.park(key, *id, clock::now());
        if let Some(Sink::Task(waker)) = board.sinks.get_mut(id) {
            *waker = rung.is_none().then(|| context.waker().clone());
        }
        drop(board);
        self.parked = rung.is_none();
        rung.map_or(Poll::Pending, Poll::Ready)
    }
}

/// A ring that reached this waiter but not yet its task belongs to whoever sleeps next.
impl<K: Key> Drop for Rung<'_, K> {
    fn drop(&mut self) {
        if self.parked {
            let Armed { hub, key, id, .. } = &*self.armed;
            let wakes = hub.board().unpark(key, *id, clock::now());
            wakes.wake();
        }
    }
}

/// A look under way. Dropped without a word it counts as failed, and its ring is put back.
#[derive(Debug)]
#[must_use = "say what the look found, or its ring is put back"]
pub struct Look<'a, K: Key> {
    armed: &'a mut Armed<K>,
    /// Taken when the look ends.
    began: Option<Began>,
}

impl<K: Key> Look<'_, K> {
    /// Why it is made.
    pub fn cause(&self) -> Cause {
        self.began.map_or(Cause::Asked, |began| began.cause)
    }

    /// Ends the look. A filled one passes the ring on, or keeps it if nobody else waits.
    pub fn found(mut self, outcome: Outcome) {
        self.end(outcome);
    }

    fn end(&mut self, outcome: Outcome) {
        let Some(began) = self.began.take() else { return };
        let Armed { hub, key, id, .. } = &*self.armed;
        let (wakes, missed) = hub.board().finish(WaiterAt { key, id: *id }, began, outcome, clock::now());
        wakes.wake();
        hub.tell(Event::Looked { cause: began.cause, outcome, keys: 1 });
        if missed {
            hub.tell(Event::Missed { cause: began.cause });
        }
        self.armed.unrung = Cause::Asked;
    }
}

impl<K: Key> Drop for Look<'_, K> {
    fn drop(&mut self) {
        self.end(Outcome::Failed);
    }
}
