//! One key: its waiters, and who must be woken.
//!
//! Owns the generation, the dirty bit, the baton and the queue of one key, for both policies. Promises, with `One`: never a
//! ring kept on the key while somebody is parked, and never two batons that have not begun to look. With `All`: every armed
//! waiter remembers each ring until its own next look begins. Wakes nobody itself: it answers with the ids to wake.
//!
//! The races it closes, each with a test of the same name:
//! - a ring between look and wait is kept (`dirty`, or the waiter's own `rung`);
//! - a ring during a look is not answered by that look: its generation is newer than the look's;
//! - a waiter that goes with a baton it never used passes it on;
//! - a look that fails puts its ring back.
//!
//! Next: [`super::board`], which keeps one per key.

use std::collections::{BTreeMap, HashMap};

use super::policy::Policy;
use crate::cause::Cause;
use crate::outcome::Outcome;

pub(crate) type WaiterId = u64;

/// A period during which the link was proven without a break.
pub(crate) type Trust = u64;

/// One waiter of the key.
#[derive(Debug)]
struct Waiter {
    /// Its place in the queue: lower has waited longer.
    turn: u64,
    /// It must look, for this reason; stays until its look begins.
    rung: Option<Cause>,
    /// With `All`: the ring was put back by its own failed or filled look, so nobody else knows of it.
    owes: bool,
    parked: bool,
}

/// A time during which every ring of a key said where to look, under one trust. Whoever knows all about a key as of one
/// stretch, and looks at it in the same, need only follow what it was told: nothing else can have become ready unannounced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stretch {
    trust: Trust,
    began: u64,
}

/// A look under way, as the entry must remember it to judge its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Began {
    pub(crate) cause: Cause,
    generation: u64,
    trust: Option<Trust>,
    stretch: u64,
}

/// How a look ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    pub(crate) outcome: Outcome,
    /// Whatever is left to look for is known to whoever looks next.
    pub(crate) told: bool,
}

impl From<Outcome> for Ended {
    fn from(outcome: Outcome) -> Self {
        Self { outcome, told: false }
    }
}

impl Began {
    /// None while the link is not proven: then something may have gone unheard.
    pub(crate) fn stretch(&self) -> Option<Stretch> {
        self.trust.map(|trust| Stretch { trust, began: self.stretch })
    }
}

/// A ring handed to a waiter that has not begun to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Baton {
    pub(crate) holder: WaiterId,
    pub(crate) number: u64,
}

#[derive(Debug)]
pub(crate) struct Entry {
    policy: Policy,
    generation: u64,
    /// The number of the last ring that did not say where.
    stretch: u64,
    /// With `One`: a ring that nobody was there to take.
    dirty: Option<Cause>,
    /// With `One`: at most one ring is on its way to a look; more would only multiply looks.
    baton: Option<Baton>,
    waiters: HashMap<WaiterId, Waiter>,
    /// The parked waiters, the one that has waited longest first.
    queue: BTreeMap<u64, WaiterId>,
    /// Looked at and found to have no more, since the last ring, within this trust.
    clean: Option<Trust>,
    /// Its place among the entries that outlive their waiters.
    pub(crate) lingers: Option<u64>,
}

impl Entry {
    pub(crate) fn new(policy: Policy, number: u64) -> Self {
        Self {
            policy,
            generation: 0,
            stretch: number,
            dirty: None,
            baton: None,
            waiters: HashMap::new(),
            queue: BTreeMap::new(),
            clean: None,
            lingers: None,
        }
    }

    /// Adds a waiter. Unless the key is known to have nothing, it begins rung: it looks before it can sleep.
    pub(crate) fn arm(&mut self, id: WaiterId, turn: u64, trust: Option<Trust>) {
        let rung = (!self.is_clean(trust)).then_some(Cause::Started);
        self.waiters.insert(id, Waiter { turn, rung, owes: false, parked: false });
    }

    pub(crate) fn must_look(&self, id: WaiterId) -> bool {
        self.dirty.is_some() || self.waiters.get(&id).is_some_and(|waiter| waiter.rung.is_some())
    }

    pub(crate) fn rung(&self, id: WaiterId) -> Option<Cause> {
        self.waiters.get(&id)?.rung
    }

    pub(crate) fn is_clean(&self, trust: Option<Trust>) -> bool {
        trust.is_some() && self.clean == trust
    }

    pub(crate) fn waiters(&self) -> usize {
        self.waiters.len()
    }

    pub(crate) const fn baton(&self) -> Option<Baton> {
        self.baton
    }

    /// Somebody says "look", and perhaps to the one who looks where. `number` names the baton, should one be handed.
    pub(crate) fn ring(&mut self, cause: Cause, told: bool, number: u64) -> Vec<WaiterId> {
        self.generation += 1;
        if !told {
            self.stretch = number;
        }
        self.clean = None;
        match self.policy {
            Policy::All => self.ring_everyone(cause),
            Policy::One => self.hand_on(cause, number),
        }
    }

    /// The waiter is about to sleep. Answers with a cause if it must not.
    pub(crate) fn park(&mut self, id: WaiterId, number: u64) -> Option<Cause> {
        let waiter = self.waiters.get_mut(&id)?;
        if waiter.rung.is_none() {
            waiter.rung = self.dirty.take();
            if waiter.rung.is_some() {
                self.baton = Some(Baton { holder: id, number });
            }
        }
        if waiter.rung.is_none() {
            waiter.parked = true;
            self.queue.insert(waiter.turn, id);
        }
        waiter.rung
    }

    /// The waiter stopped sleeping for a reason of its own. A baton it was handed and has not noticed goes on.
    pub(crate) fn unpark(&mut self, id: WaiterId, number: u64) -> Vec<WaiterId> {
        self.leave_queue(id);
        self.give_up_baton(id, number)
    }

    /// The waiter begins to look: rings so far are answered by this look, later ones are not.
    pub(crate) fn begin(&mut self, id: WaiterId, unrung: Cause, trust: Option<Trust>) -> Began {
        self.leave_queue(id);
        if self.baton.is_some_and(|baton| baton.holder == id) {
            self.baton = None;
        }
        let own = self.waiters.get_mut(&id).and_then(|waiter| {
            waiter.owes = false;
            waiter.rung.take()
        });
        let kept = self.dirty.take();
        let cause = own.or(kept).unwrap_or(unrung);
        Began { cause, generation: self.generation, trust, stretch: self.stretch }
    }

    /// The look ended. `turn` is the waiter's new place: it had its chance.
    pub(crate) fn finish(&mut self, id: WaiterId, look: Began, end: Ended, turn: u64) -> Vec<WaiterId> {
        let Ended { outcome, told } = end;
        if !(outcome.shows_no_more() || (told && outcome == Outcome::Filled)) {
            self.stretch = turn;
        }
        if let Some(waiter) = self.waiters.get_mut(&id) {
            waiter.turn = turn;
        }
        match outcome {
            Outcome::Empty | Outcome::UnderFilled => {
                // Of the trust it began under: after a break there is another, and what was shown under this one is void.
                if self.generation == look.generation {
                    self.clean = look.trust;
                }
                Vec::new()
            }
            Outcome::Filled => self.put_back(id, Cause::More, turn),
            Outcome::Failed => self.put_back(id, look.cause, turn),
            // Whoever looks again, and when, is the caller's: the rows are somebody else's for now.
            Outcome::Contended => {
                self.generation += 1;
                self.clean = None;
                Vec::new()
            }
        }
    }

    /// Whether a ring came after the look began.
    pub(crate) const fn rung_since(&self, look: &Began) -> bool {
        self.generation != look.generation
    }

    /// Removes a waiter. What it was handed and has not used goes on.
    pub(crate) fn disarm(&mut self, id: WaiterId, number: u64) -> Vec<WaiterId> {
        let wake = self.unpark(id, number);
        match self.waiters.remove(&id) {
            Some(Waiter { rung: Some(cause), owes: true, .. }) => self.inherit(cause),
            Some(_) | None => wake,
        }
    }

    /// The baton's holder did not begin to look in time: the next one looks too, if there is one.
    pub(crate) fn overtake(&mut self, late: Baton, number: u64) -> Vec<WaiterId> {
        if self.baton != Some(late) || self.queue.is_empty() {
            return Vec::new();
        }
        self.baton = None;
        let cause = self.waiters.get(&late.holder).and_then(|waiter| waiter.rung);
        self.hand_on(cause.unwrap_or(Cause::More), number)
    }

    fn ring_everyone(&mut self, cause: Cause) -> Vec<WaiterId> {
        for waiter in self.waiters.values_mut() {
            waiter.rung.get_or_insert(cause);
            waiter.parked = false;
        }
        std::mem::take(&mut self.queue).into_values().collect()
    }

    /// Gives the ring to the waiter that has waited longest; keeps it on the key when nobody is there.
    fn hand_on(&mut self, cause: Cause, number: u64) -> Vec<WaiterId> {
        if self.baton.is_some() {
            return Vec::new(); // its look has not begun, so it will see what this ring is about
        }
        let Some((_, id)) = self.queue.pop_first() else {
            self.dirty.get_or_insert(cause);
            return Vec::new();
        };
        if let Some(waiter) = self.waiters.get_mut(&id) {
            waiter.rung = Some(cause);
            waiter.parked = false;
        }
        self.baton = Some(Baton { holder: id, number });
        vec![id]
    }

    /// Another look that began earlier must not call the key clean: it may have skipped the rows this one had locked.
    fn put_back(&mut self, id: WaiterId, cause: Cause, number: u64) -> Vec<WaiterId> {
        self.generation += 1;
        self.clean = None;
        match self.policy {
            Policy::One => self.hand_on(cause, number),
            Policy::All => {
                if let Some(waiter) = self.waiters.get_mut(&id) {
                    waiter.rung.get_or_insert(cause);
                    waiter.owes = true;
                }
                Vec::new()
            }
        }
    }

    /// With `All`: the ring that only a leaving waiter knew of goes to one of those that stay.
    fn inherit(&mut self, cause: Cause) -> Vec<WaiterId> {
        let heir = self.queue.pop_first().map(|(_, id)| id);
        let any = heir.or_else(|| self.waiters.keys().next().copied());
        if let Some(waiter) = any.and_then(|id| self.waiters.get_mut(&id)) {
            waiter.rung.get_or_insert(cause);
            waiter.owes = true;
            waiter.parked = false;
        }
        heir.into_iter().collect()
    }

    fn give_up_baton(&mut self, id: WaiterId, number: u64) -> Vec<WaiterId> {
        if self.baton.is_none_or(|baton| baton.holder != id) {
            return Vec::new();
        }
        self.baton = None;
        let cause = self.waiters.get_mut(&id).and_then(|waiter| waiter.rung.take());
        self.hand_on(cause.unwrap_or(Cause::More), number)
    }

    fn leave_queue(&mut self, id: WaiterId) {
        if let Some(waiter) = self.waiters.get_mut(&id)
            && waiter.parked
        {
            waiter.parked = false;
            self.queue.remove(&waiter.turn);
        }
    }

    #[cfg(all(test, not(shuttle)))]
    pub(crate) fn check(&self) {
        assert!(self.dirty.is_none() || self.queue.is_empty(), "a ring lies on the key while somebody sleeps");
        assert!(self.dirty.is_none() || self.baton.is_none(), "a ring lies on the key while a baton is out");
        assert_eq!(self.queue.len(), self.waiters.values().filter(|waiter| waiter.parked).count());
        if let Some(baton) = self.baton {
            let holder = self.waiters.get(&baton.holder).expect("the holder is armed");
            assert!(holder.rung.is_some() && !holder.parked, "the holder of a baton sleeps");
        }
    }
}
