//! Arm, claim, wait: one key, in a loop of your own.
//!
//! Owns a [`Watch`] of one key. Promises that it cannot be used in the wrong order: an armed key
//! that is not known to be empty is woken, so the first [`wait`](Armed::wait) says "claim"; a
//! [`Claim`] that is dropped puts its wake back. Every future here may be dropped at any await. A
//! wake of the key wakes all its waiters: where one claim could serve many of them, use a
//! [`Dispatcher`](crate::Dispatcher).
//!
//! Next: [`super::watch`].

use std::time::Instant;

use super::watch::Watch;
use super::{Hub, Key};
use crate::cause::Cause;
use crate::clock;
use crate::observe::Event;
use crate::outcome::Outcome;
use crate::refused::Refused;

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// The key was woken: claim now.
    Woken(Cause),
    /// The key was not woken in time.
    TimedOut,
}

/// A waiter for one key. From its making on no wake of the key is lost.
#[derive(Debug)]
#[must_use = "dropping it ends the wait"]
pub struct Armed<K: Key> {
    hub: Hub<K>,
    watch: Watch<K>,
    key: K,
    /// The cause of the next claim if the key is not woken.
    unwoken: Cause,
}

impl<K: Key> Armed<K> {
    pub(super) fn new(hub: Hub<K>, key: K) -> Result<Self, Refused> {
        let mut watch = hub.watch();
        watch.arm(key.clone())?;
        Ok(Self { hub, watch, key, unwoken: Cause::Asked })
    }

    /// The key.
    pub const fn key(&self) -> &K {
        &self.key
    }

    /// Whether to claim now. A newcomer need not if the key was found empty since its last wake,
    /// under a proven link.
    pub fn must_claim(&self) -> bool {
        self.watch.is_woken()
    }

    /// Sleeps until the key is woken, or until `until`. Returns at once if it was woken since the
    /// last claim began.
    pub async fn wait(&mut self, until: Instant) -> Waited {
        if let Ok(cause) = tokio::time::timeout_at(clock::timer(until), self.woken()).await {
            return Waited::Woken(cause);
        }
        self.unwoken = Cause::Fallback;
        Waited::TimedOut
    }

    /// Sleeps until the key is woken, however long that takes.
    pub async fn woken(&mut self) -> Cause {
        self.watch.woken().await;
        self.hub.board().woken(self.watch.id(), &self.key).map_or(self.unwoken, |woken| woken.cause)
    }

    /// Begins a claim. It answers every wake so far; a later wake needs another claim.
    pub fn claim(&mut self) -> Claim<'_, K> {
        let cause = self.watch.begin(&self.key, self.unwoken).map_or(self.unwoken, |began| began.cause);
        Claim { armed: self, cause, ended: false }
    }
}

/// A claim under way. Dropped without [`found`](Claim::found) it has failed, and its wake is put
/// back.
#[derive(Debug)]
#[must_use = "report what the claim found, or its wake is put back"]
pub struct Claim<'a, K: Key> {
    armed: &'a mut Armed<K>,
    cause: Cause,
    ended: bool,
}

impl<K: Key> Claim<'_, K> {
    /// Why it is made.
    pub const fn cause(&self) -> Cause {
        self.cause
    }

    /// Ends the claim. A filled one wakes all waiters of the key again: there may be more.
    pub fn found(mut self, outcome: Outcome) {
        self.end(outcome);
    }

    fn end(&mut self, outcome: Outcome) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        let Armed { hub, watch, key, unwoken } = &mut *self.armed;
        let missed = watch.ended(key, outcome);
        hub.report(Event::RoundEnded { cause: self.cause, outcome, keys: 1 });
        if missed {
            hub.report(Event::Missed { cause: self.cause });
        }
        *unwoken = Cause::Asked;
    }
}

impl<K: Key> Drop for Claim<'_, K> {
    fn drop(&mut self) {
        self.end(Outcome::Failed);
    }
}
