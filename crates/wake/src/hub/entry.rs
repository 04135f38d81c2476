//! One key: who waits for it, and what is known about it.
//!
//! Owns the generation, the stretch and the waiters of one key. Promises that every waiter
//! remembers a wake until its own next claim begins. Wakes nobody itself: it answers with those to
//! wake.
//!
//! The races it closes, each with a test of the same name:
//! - a wake between claim and wait is kept: the waiter is woken already when it is about to sleep;
//! - a wake during a claim is not answered by that claim: its generation is newer than the claim's;
//! - a claim that fails or is filled wakes everybody again: another waiter may have skipped the
//!   rows it had locked.
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

/// What one watch does about the key.
#[derive(Debug, Default)]
struct Waiter {
    /// The first wake since its last claim began.
    woken: Option<Woken>,
    claims: bool,
}

/// A time during which every wake of a key named the place of the work, under one trust. A source
/// that searched a key whole in one stretch, and claims from it in the same, need only follow the
/// announced places: nothing else can have become ready.
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
    /// Whatever is left to claim is known to the one that claims next.
    pub(crate) announced: bool,
    pub(crate) at: Instant,
}

impl Began {
    /// None while the link is not proven: then a wake may be missing.
    pub(crate) fn stretch(&self) -> Option<Stretch> {
        self.trust.map(|trust| Stretch { trust, began: self.stretch })
    }
}

#[derive(Debug)]
pub(crate) struct Entry {
    generation: u64,
    /// The number of the last wake that named no place.
    stretch: u64,
    waiters: BTreeMap<WatchId, Waiter>,
    /// Claimed from and found to have no more, since the last wake, within this trust.
    clean: Option<Trust>,
    /// Its place among the entries that outlive their waiters.
    pub(crate) lingers: Option<u64>,
}

impl Entry {
    pub(crate) const fn new(number: u64) -> Self {
        Self { generation: 0, stretch: number, waiters: BTreeMap::new(), clean: None, lingers: None }
    }

    /// Adds a waiter. Unless the key is known to have nothing, it begins woken: it claims before it
    /// can sleep.
    pub(crate) fn arm(&mut self, watch: WatchId, trust: Option<Trust>, now: Instant) {
        let woken = (!self.is_clean(trust)).then_some(Woken { cause: Cause::Started, since: now });
        self.waiters.insert(watch, Waiter { woken, claims: false });
    }

    /// Removes a waiter. Every wake it knows of, the others know of too.
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

    /// There may be work; `announced` if its place was announced.
    pub(crate) fn wake(&mut self, woken: Woken, announced: bool, number: u64) -> Vec<WatchId> {
        if !announced {
            self.stretch = number;
        }
        self.wake_everybody(woken)
    }

    /// The waiter begins to claim: wakes so far are answered by this claim, later ones are not.
    pub(crate) fn begin(&mut self, watch: WatchId, unwoken: Cause, trust: Option<Trust>) -> Option<Began> {
        let waiter = self.waiters.get_mut(&watch)?;
        waiter.claims = true;
        let woken = waiter.woken.take();
        let cause = woken.map_or(unwoken, |woken| woken.cause);
        let (generation, stretch) = (self.generation, self.stretch);
        Some(Began { cause, woken_at: woken.map(|woken| woken.since), generation, trust, stretch })
    }

    /// The claim ended. Answers with those that must claim, the waiter itself among them if it was
    /// woken meanwhile.
    pub(crate) fn finish(&mut self, watch: WatchId, claim: Began, end: Ended, number: u64) -> Vec<WatchId> {
        let Ended { outcome, announced, .. } = end;
        if !(outcome.shows_no_more() || (announced && outcome == Outcome::Filled)) {
            self.stretch = number;
        }
        let mut awake = Vec::new();
        if let Some(waiter) = self.waiters.get_mut(&watch) {
            waiter.claims = false;
            awake.extend(waiter.woken.map(|_| watch));
        }
        match outcome {
            // Of the trust it began under: after a break there is another, and what was shown under
            // this one is void.
            Outcome::Empty | Outcome::UnderFilled if self.generation == claim.generation => self.clean = claim.trust,
            Outcome::Empty | Outcome::UnderFilled => {}
            Outcome::Filled => awake.extend(self.wake_everybody(Woken { cause: Cause::More, since: end.at })),
            Outcome::Failed => awake.extend(self.wake_everybody(Woken { cause: claim.cause, since: end.at })),
            // Who claims again, and when, is the caller's: the rows are somebody else's for now.
            Outcome::Contended => self.changed(),
        }
        awake
    }

    /// Whether a wake came after the claim began.
    pub(crate) const fn woken_since(&self, claim: &Began) -> bool {
        self.generation != claim.generation
    }

    /// Answers with those that slept; one that claims sees it when its claim ends.
    fn wake_everybody(&mut self, woken: Woken) -> Vec<WatchId> {
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
