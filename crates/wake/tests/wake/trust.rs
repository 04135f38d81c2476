//! When a newcomer need not claim.

use reveille_wake::{Armed, Cause, DueSource, Hub, HubOptions, Link, Outcome, Waited};
use tokio::task::JoinSet;

use crate::rig::{now, proven, secs, settle};

fn linked_hub() -> Hub<&'static str> {
    let (hub, _runner) = Hub::new(HubOptions::default());
    hub.set_link(proven());
    hub
}

fn claimed(hub: &Hub<&'static str>, outcome: Outcome) -> Armed<&'static str> {
    let mut armed = hub.arm("mail").expect("there is room");
    armed.claim().found(outcome);
    armed
}

fn newcomer_must_claim(hub: &Hub<&'static str>) -> bool {
    hub.arm("mail").expect("there is room").must_claim()
}

#[tokio::test(start_paused = true)]
async fn a_newcomer_need_not_claim_from_a_key_known_to_be_empty() {
    let hub = linked_hub();

    drop(claimed(&hub, Outcome::Empty));
    assert!(!newcomer_must_claim(&hub));

    drop(claimed(&hub, Outcome::UnderFilled));
    assert!(!newcomer_must_claim(&hub));
}

#[tokio::test(start_paused = true)]
async fn after_a_wake_a_newcomer_claims() {
    let hub = linked_hub();
    drop(claimed(&hub, Outcome::Empty));

    hub.wake(&"mail", Cause::Pushed);

    assert!(newcomer_must_claim(&hub));
}

/// B20: "nothing for you" is not "nothing there".
#[tokio::test(start_paused = true)]
async fn claims_that_do_not_show_emptiness_are_not_trusted() {
    for outcome in [Outcome::Filled, Outcome::Contended, Outcome::Failed] {
        let hub = linked_hub();
        drop(claimed(&hub, outcome));
        assert!(newcomer_must_claim(&hub), "{outcome}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_proven_link_every_newcomer_claims() {
    for link in [Link::Off, Link::Connecting { attempts: 1 }, Link::Stalled { since: now() }] {
        let hub = linked_hub();
        drop(claimed(&hub, Outcome::Empty));
        hub.set_link(link);
        assert!(newcomer_must_claim(&hub), "{link:?}");
        drop(claimed(&hub, Outcome::Empty));
        assert!(newcomer_must_claim(&hub), "{link:?}");
    }
}

/// What was trusted before a break of the link is not trusted after it, even if the claim spans it.
#[tokio::test(start_paused = true)]
async fn a_claim_across_a_break_shows_nothing() {
    let hub = linked_hub();
    let mut armed = hub.arm("mail").unwrap();

    let claim = armed.claim();
    hub.set_link(Link::Lost { since: now(), attempts: 0 });
    hub.set_link(proven());
    claim.found(Outcome::Empty);

    assert!(newcomer_must_claim(&hub));
    assert_eq!(armed.wait(now()).await, Waited::Woken(Cause::Reconnected));
}

#[tokio::test(start_paused = true)]
async fn a_clean_key_is_forgotten_after_a_minute() {
    let hub = linked_hub();
    drop(claimed(&hub, Outcome::Empty));

    tokio::time::advance(secs(59)).await;
    assert!(!newcomer_must_claim(&hub));
    tokio::time::advance(secs(61)).await;

    assert!(newcomer_must_claim(&hub));
}

/// A key known to be empty *now* has a row that is due later.
#[tokio::test(start_paused = true)]
async fn after_a_due_time_a_newcomer_claims() {
    let (hub, runner) = Hub::new(HubOptions::default());
    hub.set_link(proven());
    let mut tasks = JoinSet::new();
    tasks.spawn(runner.run(std::future::pending()));
    hub.set_due("mail", DueSource::Round, Some(secs(5)));
    drop(claimed(&hub, Outcome::Empty));
    assert!(!newcomer_must_claim(&hub));

    tokio::time::advance(secs(6)).await;
    settle().await;

    assert!(newcomer_must_claim(&hub));
}

/// The failed claim had rows locked, which the other claim skipped: its "empty" shows nothing about
/// them.
#[tokio::test(start_paused = true)]
async fn a_claim_beside_one_that_failed_or_was_contended_shows_nothing() {
    for other in [Outcome::Failed, Outcome::Contended, Outcome::Filled] {
        let (hub, _runner) = Hub::new(HubOptions::default());
        hub.set_link(proven());
        let (mut first, mut second) = (hub.arm("mail").unwrap(), hub.arm("mail").unwrap());

        let (one, two) = (first.claim(), second.claim());
        one.found(other);
        two.found(Outcome::Empty);

        assert!(newcomer_must_claim(&hub), "{other}");
    }
}
