//! The board against a model that only knows what is owed.
//!
//! The model keeps one fact: which rings no look has answered yet. Whatever is armed, parked, cancelled, failed or dropped in
//! whatever order, somebody awake must know of each of them, and a key is called empty only if a look showed it.

use std::collections::HashMap;
use std::time::Instant;

use proptest::prelude::*;

use super::board::{Board, Sink, WaiterAt};
use super::entry::{Began, WaiterId};
use super::policy::{HubOptions, Policy};
use crate::cause::Cause;
use crate::outcome::Outcome;

#[derive(Clone, Debug)]
enum Step {
    Arm(u8),
    Ring(u8),
    RingAll,
    Trust(bool),
    Park(usize),
    Unpark(usize),
    Begin(usize),
    Finish(usize, Outcome),
    Disarm(usize),
    Overtake,
}

fn step() -> impl Strategy<Value = Step> {
    let key = 0_u8..2;
    let who = 0_usize..6;
    let outcome = proptest::sample::select(&Outcome::ALL[..]);
    prop_oneof![
        3 => key.clone().prop_map(Step::Arm),
        3 => key.prop_map(Step::Ring),
        1 => Just(Step::RingAll),
        1 => any::<bool>().prop_map(Step::Trust),
        4 => who.clone().prop_map(Step::Park),
        1 => who.clone().prop_map(Step::Unpark),
        4 => who.clone().prop_map(Step::Begin),
        4 => (who.clone(), outcome).prop_map(|(who, outcome)| Step::Finish(who, outcome)),
        2 => who.prop_map(Step::Disarm),
        1 => Just(Step::Overtake),
    ]
}

struct Waiter {
    id: WaiterId,
    key: u8,
    look: Option<(Began, u64, u64)>,
    /// With `All`: a ring it has not looked for.
    owed: bool,
}

struct Model {
    policy: Policy,
    board: Board<u8>,
    waiters: Vec<Waiter>,
    /// With `One`: a ring nobody has looked for, per key.
    owed: HashMap<u8, bool>,
    rings: HashMap<u8, u64>,
    clean: HashMap<u8, bool>,
    trusts: u64,
    trusted: bool,
    now: Instant,
}

impl Model {
    fn new(policy: Policy) -> Self {
        Self {
            policy,
            board: Board::new(HubOptions::default().policy(policy)),
            waiters: Vec::new(),
            owed: HashMap::new(),
            rings: HashMap::new(),
            clean: HashMap::new(),
            trusts: 0,
            trusted: false,
            now: Instant::now(),
        }
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Arm(key) if self.waiters.len() < 6 => {
                let id = self.board.arm(&key, Sink::Task(None), self.now).expect("there is room");
                self.waiters.push(Waiter { id, key, look: None, owed: false });
            }
            Step::Ring(key) => {
                drop(self.board.ring(&key, Cause::Pushed, self.now));
                self.owe(key);
            }
            Step::RingAll => self.ring_all(),
            Step::Trust(proven) => self.trust(proven),
            Step::Overtake => drop(self.board.overtake(self.now + HubOptions::default().delivery_timeout)),
            Step::Arm(_) => {}
            Step::Park(who) | Step::Unpark(who) | Step::Begin(who) | Step::Finish(who, _) | Step::Disarm(who) => {
                if who < self.waiters.len() {
                    self.step_of(who, step);
                }
            }
        }
    }

    fn step_of(&mut self, who: usize, step: &Step) {
        let Waiter { id, key, ref look, .. } = self.waiters[who];
        let looks = look.is_some();
        match step {
            Step::Park(_) if !looks => drop(self.board.park(&key, id, self.now)),
            Step::Unpark(_) if !looks => drop(self.board.unpark(&key, id, self.now)),
            Step::Begin(_) if !looks => self.begin(who),
            Step::Finish(_, outcome) if looks => self.finish(who, *outcome),
            Step::Disarm(_) => {
                if looks {
                    self.finish(who, Outcome::Failed);
                }
                drop(self.board.disarm(&key, id, self.now));
                self.waiters.remove(who);
            }
            _ => {}
        }
    }

    fn owe(&mut self, key: u8) {
        *self.rings.entry(key).or_default() += 1;
        self.clean.insert(key, false);
        self.owed.insert(key, true);
        self.waiters.iter_mut().filter(|waiter| waiter.key == key).for_each(|waiter| waiter.owed = true);
    }

    fn ring_all(&mut self) {
        drop(self.board.ring_all(Cause::PeerLost, self.now));
        self.owe(0);
        self.owe(1);
    }

    fn trust(&mut self, proven: bool) {
        self.trusts += 1;
        self.trusted = proven;
        self.clean.clear();
        if proven {
            drop(self.board.trust_anew(self.now));
            self.owe(0);
            self.owe(1);
        } else {
            drop(self.board.distrust());
        }
    }

    fn begin(&mut self, who: usize) {
        let Waiter { id, key, .. } = self.waiters[who];
        let began = self.board.begin(&key, id, Cause::Asked).expect("it is armed");
        let rings = self.rings.get(&key).copied().unwrap_or_default();
        self.waiters[who].look = Some((began, rings, self.trusts));
        self.waiters[who].owed = false;
        self.owed.insert(key, false);
    }

    fn finish(&mut self, who: usize, outcome: Outcome) {
        let Waiter { id, key, .. } = self.waiters[who];
        let (began, rings, trusts) = self.waiters[who].look.take().expect("it looks");
        drop(self.board.finish(WaiterAt { key: &key, id }, began, outcome, self.now));
        let unchanged = self.rings.get(&key).copied().unwrap_or_default() == rings && self.trusts == trusts;
        match outcome {
            Outcome::Empty | Outcome::UnderFilled if unchanged => {
                self.clean.insert(key, self.trusted);
            }
            Outcome::Empty | Outcome::UnderFilled => {}
            Outcome::Contended => _ = self.clean.insert(key, false),
            Outcome::Filled | Outcome::Failed => {
                self.clean.insert(key, false);
                self.owed.insert(key, true);
                self.waiters[who].owed = true;
            }
        }
    }

    fn check(&self) {
        for key in [0, 1] {
            if let Some(entry) = self.board.entries.get(&key) {
                entry.check();
            }
            let called_empty = self.board.is_known_empty(&key);
            let shown_empty = self.clean.get(&key).copied().unwrap_or_default();
            assert!(!called_empty || shown_empty, "key {key} is called empty and no look showed it");
            let mut of_key = self.waiters.iter().filter(|waiter| waiter.key == key).peekable();
            let owed = self.owed.get(&key).copied().unwrap_or_default();
            if self.policy == Policy::One && owed && of_key.peek().is_some() {
                assert!(of_key.any(|waiter| self.board.must_look(&key, waiter.id)), "nobody knows of a ring");
            }
        }
        if self.policy == Policy::All {
            for waiter in self.waiters.iter().filter(|waiter| waiter.owed) {
                assert!(self.board.must_look(&waiter.key, waiter.id), "a waiter missed a ring");
            }
        }
    }
}

fn follows_the_model(policy: Policy, steps: &[Step]) {
    let mut model = Model::new(policy);
    for step in steps {
        model.take(step);
        model.check();
    }
    for who in (0..model.waiters.len()).rev() {
        model.step_of(who, &Step::Disarm(who));
    }
    assert_eq!((model.board.waiters(), model.board.next_overdue()), (0, None), "something is left behind");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1_000) })]

    #[test]
    fn with_one_somebody_awake_knows_of_every_ring(steps in proptest::collection::vec(step(), 1..60)) {
        follows_the_model(Policy::One, &steps);
    }

    #[test]
    fn with_all_every_waiter_knows_of_every_ring(steps in proptest::collection::vec(step(), 1..60)) {
        follows_the_model(Policy::All, &steps);
    }
}
