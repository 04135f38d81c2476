//! The board against a model that only knows which wakes are unanswered.
//!
//! The model keeps one fact: which wakes each waiter has not answered with a claim yet. In whatever
//! order keys are armed and claims fail, are filled or dropped, the waiter must know of each of
//! these wakes, and a key is called empty only if a claim showed it.

use std::collections::HashMap;
use std::time::Instant;

use proptest::prelude::*;

use super::board::Board;
use super::entry::{Began, Ended, WatchId, Woken};
use super::options::HubOptions;
use crate::cause::Cause;
use crate::outcome::Outcome;

#[derive(Clone, Debug)]
enum Step {
    Arm(u8),
    Wake(u8),
    WakeAll,
    Trust(bool),
    Begin(usize),
    Finish(usize, Outcome),
    Disarm(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let key = 0_u8..2;
    let who = 0_usize..6;
    let outcome = proptest::sample::select(&Outcome::ALL[..]);
    prop_oneof![
        3 => key.clone().prop_map(Step::Arm),
        3 => key.prop_map(Step::Wake),
        1 => Just(Step::WakeAll),
        1 => any::<bool>().prop_map(Step::Trust),
        4 => who.clone().prop_map(Step::Begin),
        4 => (who.clone(), outcome).prop_map(|(who, outcome)| Step::Finish(who, outcome)),
        2 => who.prop_map(Step::Disarm),
    ]
}

/// A claim, and how many wakes and changes of trust there had been when it began.
#[derive(Clone, Copy)]
struct Claim {
    began: Began,
    wakes: u64,
    trusts: u64,
}

struct Waiter {
    watch: WatchId,
    key: u8,
    claim: Option<Claim>,
    /// It has not claimed since a wake.
    owed: bool,
}

struct Model {
    board: Board<u8>,
    waiters: Vec<Waiter>,
    wakes: HashMap<u8, u64>,
    clean: HashMap<u8, bool>,
    trusts: u64,
    trusted: bool,
    now: Instant,
}

impl Model {
    fn new() -> Self {
        Self {
            board: Board::new(HubOptions::default()),
            waiters: Vec::new(),
            wakes: HashMap::new(),
            clean: HashMap::new(),
            trusts: 0,
            trusted: false,
            now: Instant::now(),
        }
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Arm(key) if self.waiters.len() < 6 => {
                let watch = self.board.add_watch();
                self.board.arm(watch, &key, self.now).expect("there is room");
                let owed = self.board.woken(watch, &key).is_some();
                assert!(owed || self.is_clean(key), "a newcomer that need not claim, of a key that is not empty");
                self.waiters.push(Waiter { watch, key, claim: None, owed });
            }
            Step::Wake(key) => {
                drop(self.board.wake(&key, self.woken(Cause::Pushed), false));
                self.owe(key);
            }
            Step::WakeAll => {
                drop(self.board.wake_all(self.woken(Cause::PeerLost)));
                self.owe(0);
                self.owe(1);
            }
            Step::Trust(proven) => self.trust(proven),
            Step::Begin(who) if self.claims(who) == Some(false) => self.begin(who),
            Step::Finish(who, outcome) if self.claims(who) == Some(true) => self.finish(who, outcome),
            Step::Disarm(who) if who < self.waiters.len() => self.disarm(who),
            Step::Arm(_) | Step::Begin(_) | Step::Finish(..) | Step::Disarm(_) => {}
        }
    }

    fn woken(&self, cause: Cause) -> Woken {
        Woken { cause, since: self.now }
    }

    fn claims(&self, who: usize) -> Option<bool> {
        self.waiters.get(who).map(|waiter| waiter.claim.is_some())
    }

    fn is_clean(&self, key: u8) -> bool {
        self.clean.get(&key).copied().unwrap_or_default()
    }

    fn owe(&mut self, key: u8) {
        *self.wakes.entry(key).or_default() += 1;
        self.clean.insert(key, false);
        self.waiters.iter_mut().filter(|waiter| waiter.key == key).for_each(|waiter| waiter.owed = true);
    }

    fn trust(&mut self, proven: bool) {
        self.trusts += 1;
        self.trusted = proven;
        self.clean.clear();
        if proven {
            drop(self.board.begin_trust(self.now));
            self.owe(0);
            self.owe(1);
        } else {
            self.board.end_trust();
        }
    }

    fn begin(&mut self, who: usize) {
        let Waiter { watch, key, .. } = self.waiters[who];
        let began = self.board.begin(watch, &key, Cause::Asked).expect("it is armed");
        let wakes = self.wakes.get(&key).copied().unwrap_or_default();
        self.waiters[who].claim = Some(Claim { began, wakes, trusts: self.trusts });
        self.waiters[who].owed = false;
    }

    fn finish(&mut self, who: usize, outcome: Outcome) {
        let Waiter { watch, key, claim, .. } = &mut self.waiters[who];
        let (watch, key, claim) = (*watch, *key, claim.take().expect("it claims"));
        drop(self.board.finish(watch, &key, claim.began, Ended { outcome, announced_only: false, at: self.now }));
        let wakes = self.wakes.get(&key).copied().unwrap_or_default();
        match outcome {
            Outcome::Empty | Outcome::UnderFilled if wakes == claim.wakes && self.trusts == claim.trusts => {
                self.clean.insert(key, self.trusted);
            }
            Outcome::Empty | Outcome::UnderFilled => {}
            Outcome::Contended => {
                *self.wakes.entry(key).or_default() += 1;
                self.clean.insert(key, false);
            }
            Outcome::Filled | Outcome::Failed => self.owe(key),
        }
    }

    fn disarm(&mut self, who: usize) {
        let Waiter { watch, key, claim, .. } = self.waiters.remove(who);
        drop(self.board.disarm(watch, &key, claim.map(|claim| claim.began), self.now));
        if claim.is_some() {
            self.owe(key); // a claim that is cut short has answered nothing
        }
    }

    fn check(&self) {
        for key in [0, 1] {
            assert!(
                !self.board.is_known_empty(&key) || self.is_clean(key),
                "{key} is called empty, no claim showed it"
            );
        }
        for Waiter { watch, key, claim, owed } in &self.waiters {
            assert_eq!(self.board.woken(*watch, key).is_some(), *owed, "what a waiter of {key} knows");
            let listed = self.board.watches[watch].woken.contains(key);
            assert_eq!(listed, *owed && claim.is_none(), "whether a waiter of {key} is awake");
        }
        assert_eq!(self.board.waiters, self.waiters.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) })]

    #[test]
    fn every_waiter_knows_of_every_wake(steps in proptest::collection::vec(step(), 1..60)) {
        let mut model = Model::new();
        for step in &steps {
            model.take(step);
            model.check();
        }
        while !model.waiters.is_empty() {
            model.disarm(0);
            model.check();
        }
    }
}
