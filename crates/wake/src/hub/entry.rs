//! One key: who waits for it, and what is known about it.
//!
//! Owns the generation, the stretch and the waiters of one key. Promises that every waiter
//! remembers a wake until its own next claim begins. Wakes no task itself: it answers with the
//! watches to wake.
//!
//! The races it closes, each with a test:
//! - a wake between claim and wait is kept: the waiter is woken already when it is about to sleep;
//! - a wake during a claim is not answered by that claim: its generation is newer than the claim's;
//! - a claim that fails or is filled wakes every waiter again: another waiter may have skipped the
//!   rows that the claim had locked.
//!
//! Next: [`super::board`], which keeps one per key.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::cause::Cause;
use crate::outcome::Outcome;

pub(crate) type WatchId = u64;

/// A period during which the link was proven without a break.
pub(crate) type Trust = u64;

/// A wake that waits for its claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Woken {
    pub(crate) cause: Cause,
    pub(crate) since: Instant,
}

/// One watch that waits for the key.
#[derive(Debug, Default)]
struct Waiter {
    /// The first wake since its last claim began.
    woken: Option<Woken>,
    claims: bool,
}

/// A period in which the place of all new work of a key was announced to the source: the link was
/// proven, and every wake was a [`Hub::wake_announced`](crate::Hub::wake_announced). A source that
/// has searched all of a key in this stretch need only check the announced places: nothing else can
/// have become ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stretch {
    trust: Trust,
    began: u64,
}

/// A claim under way, as the entry must remember it to judge its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Began {
    pub(crate) cause: Cause,
    /// When the key was woken, if it was.
    pub(crate) woken_at: Option<Instant>,
    generation: u64,
    trust: Option<Trust>,
    stretch: u64,
}

/// How a claim ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    pub(crate) outcome: Outcome,
    /// The source checked only the announced places, and knows where more work is left.
    pub(crate) announced_only: bool,
    pub(crate) at: Instant,
}

impl Began {
    /// None while the link is not proven, because a wake may be missing.
    pub(crate) fn stretch(&self) -> Option<Stretch> {
        self.trust.map(|trust| Stretch { trust, began: self.stretch })
    }
}

#[derive(Debug)]
pub(crate) struct Entry {
    generation: u64,
    /// The number of the last wake whose place was not announced.
    stretch: u64,
    waiters: BTreeMap<WatchId, Waiter>,
    /// The trust within which a claim since the last wake found no more.
    clean: Option<Trust>,
    /// Its number among the entries that outlive their waiters.
    pub(crate) lingers: Option<u64>,
}

impl Entry {
    pub(crate) const fn new(number: u64) -> Self {
        Self { generation: 0, stretch: number, waiters: BTreeMap::new(), clean: None, lingers: None }
    }

    /// Adds a waiter. Unless the key is known to be empty, the waiter begins woken: it claims
    /// before it can sleep.
    pub(crate) fn arm(&mut self, watch: WatchId, trust: Option<Trust>, now: Instant) {
        let woken = (!self.is_clean(trust)).then_some(Woken { cause: Cause::Started, since: now });
        self.waiters.insert(watch, Waiter { woken, claims: false });
    }

    /// Removes a waiter. The others know of every wake that it knows of.
    pub(crate) fn disarm(&mut self, watch: WatchId) {
        self.waiters.remove(&watch);
    }

    pub(crate) fn woken(&self, watch: WatchId) -> Option<Woken> {
        self.waiters.get(&watch)?.woken
    }

    pub(crate) fn is_clean(&self, trust: Option<Trust>) -> bool {
        trust.is_some() && self.clean == trust
    }

    pub(crate) fn waiters(&self) -> usize {
        self.waiters.len()
    }

    /// There may be work. `announced`: whether its place was announced to the source.
    pub(crate) fn wake(&mut self, woken: Woken, announced: bool, number: u64) -> Vec<WatchId> {
        if !announced {
            self.stretch = number;
        }
        self.wake_all(woken)
    }

    /// The waiter begins a claim, which answers the wakes so far and none that comes later.
    pub(crate) fn begin(&mut self, watch: WatchId, unwoken: Cause, trust: Option<Trust>) -> Option<Began> {
        let waiter = self.waiters.get_mut(&watch)?;
        waiter.claims = true;
        let woken = waiter.woken.take();
        let cause = woken.map_or(unwoken, |woken| woken.cause);
        let (generation, stretch) = (self.generation, self.stretch);
        Some(Began { cause, woken_at: woken.map(|woken| woken.since), generation, trust, stretch })
    }

    /// The claim ended. Answers with the watches that must claim, this one among them if it was
    /// woken meanwhile.
    pub(crate) fn finish(&mut self, watch: WatchId, claim: Began, end: Ended, number: u64) -> Vec<WatchId> {
        let Ended { outcome, announced_only, .. } = end;
        if !(outcome.shows_no_more() || (announced_only && outcome == Outcome::Filled)) {
            self.stretch = number;
        }
        let mut awake = Vec::new();
        if let Some(waiter) = self.waiters.get_mut(&watch) {
            waiter.claims = false;
            awake.extend(waiter.woken.map(|_| watch));
        }
        match outcome {
            // Of the trust that the claim began under: after a break there is another one, and this
            // claim shows nothing about it.
            Outcome::Empty | Outcome::UnderFilled if self.generation == claim.generation => self.clean = claim.trust,
            Outcome::Empty | Outcome::UnderFilled => {}
            Outcome::Filled => awake.extend(self.wake_all(Woken { cause: Cause::More, since: end.at })),
            Outcome::Failed => awake.extend(self.wake_all(Woken { cause: claim.cause, since: end.at })),
            // The caller decides when to claim again: another claim holds the rows for now.
            Outcome::Contended => self.changed(),
        }
        awake
    }

    /// Whether a wake came after the claim began.
    pub(crate) const fn woken_since(&self, claim: &Began) -> bool {
        self.generation != claim.generation
    }

    /// Answers with the watches that slept. A waiter that claims sees the wake when its claim ends.
    fn wake_all(&mut self, woken: Woken) -> Vec<WatchId> {
        self.changed();
        let mut slept = Vec::new();
        for (watch, waiter) in &mut self.waiters {
            if waiter.woken.is_none() {
                waiter.woken = Some(woken);
                slept.extend((!waiter.claims).then_some(*watch));
            }
        }
        slept
    }

    /// No claim that began before may call the key clean.
    fn changed(&mut self) {
        self.generation += 1;
        self.clean = None;
    }
}
