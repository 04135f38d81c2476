//! Wakes, waiters and limits of a hub.

use reveille_wake::{Armed, Cause, Hub, HubOptions, Outcome, Refused, Waited};

use crate::rig::{ms, now, proven, secs};

fn hub() -> Hub<&'static str> {
    let (hub, _runner) = Hub::new(HubOptions::default());
    hub.set_link(proven());
    hub
}

/// A waiter whose claim was empty: ready to sleep.
pub(crate) fn waiter(hub: &Hub<&'static str>) -> Armed<&'static str> {
    let mut armed = hub.arm("mail").expect("there is room");
    armed.claim().found(Outcome::Empty);
    armed
}

#[tokio::test(start_paused = true)]
async fn a_waiter_claims_before_it_can_sleep() {
    let mut armed = hub().arm("mail").unwrap();

    assert!(armed.must_claim());
    assert_eq!(armed.wait(now() + secs(60)).await, Waited::Woken(Cause::Started));
}

/// B1.
#[tokio::test(start_paused = true)]
async fn a_wake_between_claim_and_wait_is_kept() {
    let hub = hub();
    let mut armed = waiter(&hub);

    hub.wake(&"mail", Cause::Pushed);

    assert_eq!(armed.wait(now()).await, Waited::Woken(Cause::Pushed));
}

/// B2.
#[tokio::test(start_paused = true)]
async fn a_wake_during_a_claim_asks_for_another() {
    let hub = hub();
    let mut armed = hub.arm("mail").unwrap();

    let claim = armed.claim();
    hub.wake(&"mail", Cause::Pushed);
    claim.found(Outcome::Empty);

    assert_eq!(armed.wait(now()).await, Waited::Woken(Cause::Pushed));
}

#[tokio::test(start_paused = true)]
async fn a_forgotten_key_is_claimed_from_again_and_a_key_with_waiters_is_not_forgotten() {
    let hub = hub();
    let armed = waiter(&hub);

    assert!(!hub.forget(&"mail"), "a waiter waits for it");
    assert!(hub.is_known_empty(&"mail"));
    drop(armed);
    assert!(hub.is_known_empty(&"mail"), "it outlives its waiter");

    assert!(hub.forget(&"mail") && hub.forget(&"unknown"));
    assert!(!hub.is_known_empty(&"mail"));
    assert_eq!(hub.keys(), 0);

    drop(waiter(&hub));
    hub.forget_unwaited();
    assert_eq!((hub.is_known_empty(&"mail"), hub.keys()), (false, 0));
}

#[tokio::test(start_paused = true)]
async fn a_wake_of_another_key_wakes_no_waiter() {
    let hub = hub();
    let mut armed = waiter(&hub);

    hub.wake(&"letters", Cause::Pushed);

    assert_eq!(armed.wait(now() + secs(1)).await, Waited::TimedOut);
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_at_its_time() {
    let hub = hub();
    let mut armed = waiter(&hub);
    let begun = now();

    assert_eq!(armed.wait(begun + ms(250)).await, Waited::TimedOut);

    assert_eq!(now() - begun, ms(250));
    assert_eq!(armed.claim().cause(), Cause::Fallback);
}

/// B10: a thousand hints for one busy waiter cause one claim, not a thousand stale tokens.
#[tokio::test(start_paused = true)]
async fn many_wakes_ask_for_one_claim() {
    let hub = hub();
    let mut armed = waiter(&hub);
    for _ in 0..1000 {
        hub.wake(&"mail", Cause::Notified);
    }

    assert_eq!(armed.wait(now()).await, Waited::Woken(Cause::Notified));
    armed.claim().found(Outcome::Empty);

    assert_eq!(armed.wait(now() + secs(1)).await, Waited::TimedOut);
}

/// B15: every waiter sees a wake that is for all.
#[tokio::test(start_paused = true)]
async fn wake_all_reaches_every_waited_key() {
    let hub = hub();
    let mut mail = waiter(&hub);
    let mut letters = hub.arm("letters").unwrap();
    letters.claim().found(Outcome::Empty);

    hub.wake_all(Cause::PeerLost);

    assert_eq!(mail.wait(now()).await, Waited::Woken(Cause::PeerLost));
    assert_eq!(letters.wait(now()).await, Waited::Woken(Cause::PeerLost));
}

#[tokio::test(start_paused = true)]
async fn a_wake_reaches_every_waiter_once() {
    let hub = hub();
    let mut waiters = [waiter(&hub), waiter(&hub), waiter(&hub)];

    hub.wake(&"mail", Cause::Pushed);

    for armed in &mut waiters {
        assert_eq!(armed.wait(now()).await, Waited::Woken(Cause::Pushed));
        armed.claim().found(Outcome::Empty);
        assert_eq!(armed.wait(now()).await, Waited::TimedOut);
    }
}

#[tokio::test(start_paused = true)]
async fn wakes_of_unknown_keys_leave_no_trace() {
    let (hub, _runner) = Hub::new(HubOptions::default());

    for key in 0..10_000_u32 {
        hub.wake(&key, Cause::Notified);
    }

    assert_eq!(hub.keys(), 0);
}

#[tokio::test(start_paused = true)]
async fn limits_are_values() {
    let (hub, _runner) = Hub::new(HubOptions::default().max_keys(2).max_waiters(3).max_waiters_per_key(2));

    let _first = hub.arm(1).unwrap();
    let _second = hub.arm(1).unwrap();
    assert_eq!(hub.arm(1).unwrap_err(), Refused::WaitersOfKey { limit: 2 });
    let third = hub.arm(2).unwrap();
    assert_eq!(hub.arm(2).unwrap_err(), Refused::Waiters { limit: 3 });
    drop(third);
    let _other = hub.arm(3).unwrap();
    assert_eq!(hub.keys(), 2);
}

#[tokio::test(start_paused = true)]
async fn too_many_keys_are_refused_and_a_lingering_one_gives_way() {
    let (hub, _runner) = Hub::new(HubOptions::default().max_keys(2));
    hub.set_link(proven());
    let mut clean = hub.arm(1).unwrap();
    clean.claim().found(Outcome::Empty);
    drop(clean);
    let _second = hub.arm(2).unwrap();
    assert_eq!(hub.keys(), 2);

    let _third = hub.arm(3).unwrap();

    assert_eq!(hub.arm(4).unwrap_err(), Refused::Keys { limit: 2 });
}
