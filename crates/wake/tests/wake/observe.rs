//! What is observed, and when a wake counts as missed.

use std::collections::HashSet;
use std::sync::Arc;

use reveille_wake::{Cause, Counters, Hub, HubOptions, Outcome, Waited};

use crate::rig::{ms, now};

#[test]
fn names_are_distinct() {
    let causes: HashSet<&str> = Cause::ALL.iter().map(|cause| cause.name()).collect();
    let outcomes: HashSet<&str> = Outcome::ALL.iter().map(|outcome| outcome.name()).collect();

    assert_eq!((causes.len(), outcomes.len()), (Cause::ALL.len(), Outcome::ALL.len()));
}

#[tokio::test(start_paused = true)]
async fn work_found_by_a_fallback_round_is_a_missed_wake() {
    let counters = Arc::new(Counters::default());
    let (hub, _runner) = Hub::new(HubOptions::default().observer(counters.clone()));
    let mut armed = hub.arm("mail").unwrap();
    armed.claim().found(Outcome::UnderFilled);
    assert_eq!(armed.wait(now() + ms(10)).await, Waited::TimedOut);

    armed.claim().found(Outcome::UnderFilled);

    assert_eq!((counters.missed(), counters.rounds(Outcome::UnderFilled)), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn a_wake_during_the_fallback_round_announced_the_work_after_all() {
    let counters = Arc::new(Counters::default());
    let (hub, _runner) = Hub::new(HubOptions::default().observer(counters.clone()));
    let mut armed = hub.arm("mail").unwrap();
    armed.claim().found(Outcome::Empty);
    assert_eq!(armed.wait(now() + ms(10)).await, Waited::TimedOut);

    let claim = armed.claim();
    hub.wake(&"mail", Cause::Notified);
    claim.found(Outcome::UnderFilled);

    assert_eq!((counters.missed(), counters.wakes(Cause::Notified)), (0, 1));
}

#[test]
fn an_observer_may_wake() {
    let (other, _runner) = Hub::new(HubOptions::default());
    let woken = other.clone();
    let observer = Arc::new(move |_: &reveille_wake::Event| woken.wake(&1, Cause::Notified));
    let (hub, _runner) = Hub::new(HubOptions::default().observer(observer));
    let _armed = other.arm(1).unwrap();

    hub.wake(&1, Cause::Pushed);
}
