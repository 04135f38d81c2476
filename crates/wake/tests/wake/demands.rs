//! Demands: deadlines, departures, limits, shutdown.

use reveille_wake::{Answer, DispatcherOptions, Patience, Refused};

use crate::rig::{Rig, leases, ms, now, secs, settle};

#[tokio::test(start_paused = true)]
async fn a_demand_that_will_not_wait_gets_one_round() {
    let rig = Rig::new().await;
    let begun = now();

    assert_eq!(rig.request_now("mail").await, Answer::Nothing);
    rig.store.put("mail", [1]); // not announced, and the key is believed to be empty
    assert_eq!(rig.request_now("mail").await, Answer::Lease(1));

    assert_eq!((now(), rig.store.rounds()), (begun, 2));
}

#[tokio::test(start_paused = true)]
async fn a_deadline_fires_while_a_round_hangs() {
    let rig = Rig::new().await;
    rig.store.stall();
    let begun = now();

    assert_eq!(rig.request("mail", ms(700)).await, Answer::Nothing);

    assert!(now() - begun <= ms(702), "{:?}", now() - begun);
}

/// B27: the client goes away while its claim is under way.
#[tokio::test(start_paused = true)]
async fn a_lease_whose_demand_has_gone_is_released() {
    let rig = Rig::new().await;
    rig.store.put("mail", [1]);
    rig.store.stall();
    let ticket = rig.request("mail", secs(60));
    settle().await;

    drop(ticket);
    rig.store.go_on();
    settle().await;

    assert_eq!(rig.store.released(), [1]);
    assert_eq!(rig.counters.returned(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_lease_whose_demand_has_gone_goes_to_the_next_it_suits() {
    let rig = Rig::new().await;
    rig.store.make_transferable();
    rig.store.put("mail", [1]);
    rig.store.stall();
    let first = rig.request("mail", secs(60));
    let second = rig.request("mail", secs(60));
    settle().await;

    drop(first);
    rig.store.go_on();

    assert_eq!(second.await, Answer::Lease(1));
    assert!(rig.store.released().is_empty());
}

/// The answer was given, and the client goes before it takes it.
#[tokio::test(start_paused = true)]
async fn an_answer_that_was_not_taken_is_released() {
    let rig = Rig::new().await;
    let ticket = rig.request("mail", secs(60));
    settle().await;
    rig.push("mail", [1]);
    settle().await;

    drop(ticket);
    settle().await;

    assert_eq!(rig.store.released(), [1]);
}

#[tokio::test(start_paused = true)]
async fn a_demand_may_wait_under_several_keys() {
    let rig = Rig::new().await;
    let patience = Patience::Until(now() + secs(60));
    let ticket = rig.handle.request(["mail", "letters", "parcels"], (), patience).unwrap();
    settle().await;

    rig.push("parcels", [3]);

    assert_eq!(ticket.await, Answer::Lease(3));
}

/// Rounds of two: the demands that a round has no room for are answered by it too if it is empty,
/// and get another round if there is more.
#[tokio::test(start_paused = true)]
async fn demands_that_will_not_wait_are_all_answered_however_small_the_round() {
    let rig = Rig::with(DispatcherOptions::default().max_round(2), true).await;
    let tickets = || (0..7).map(|_| rig.request_now("mail")).collect::<Vec<_>>();

    for ticket in tickets() {
        assert_eq!(ticket.await, Answer::Nothing);
    }
    assert_eq!(rig.store.rounds(), 1);

    rig.store.put("mail", 0..5);
    let mut answers = Vec::new();
    for ticket in tickets() {
        answers.push(ticket.await);
    }
    assert_eq!(leases(answers), [0, 1, 2, 3, 4]);
    assert_eq!(rig.store.rounds(), 1 + 3);
}

/// It comes while a round for one of its keys is being prepared; "nothing" must be about all keys.
#[tokio::test(start_paused = true)]
async fn a_demand_that_will_not_wait_is_claimed_for_under_all_its_keys() {
    let rig = Rig::new().await;
    let _waits = rig.request("mail", secs(60));
    settle().await;
    rig.store.stall();
    rig.hub.wake(&"mail", reveille_wake::Cause::Notified);
    settle().await;
    rig.hub.wake(&"mail", reveille_wake::Cause::Notified); // the next round is needed before the demand is known
    rig.store.put("parcels", [3]);
    let ticket = rig.handle.request(["mail", "parcels"], (), Patience::Now).unwrap();

    rig.store.go_on();

    assert_eq!(ticket.await, Answer::Lease(3));
}

#[tokio::test(start_paused = true)]
async fn limits_are_answered_with_values() {
    let rig = Rig::with(DispatcherOptions::default().max_demands(2), true).await;
    let _first = rig.request("mail", secs(60));
    let _second = rig.request("mail", secs(60));

    assert_eq!(rig.handle.request(["mail"], (), Patience::Now).unwrap_err(), Refused::Waiters { limit: 2 });
    let no_keys: [&str; 0] = [];
    assert_eq!(rig.handle.request(no_keys, (), Patience::Now).unwrap_err(), Refused::KeysOfDemand { limit: 256 });
    assert_eq!(rig.counters.refused(), 2);
}

#[tokio::test(start_paused = true)]
async fn shutdown_answers_every_demand_and_gives_back_what_the_last_round_claimed() {
    let mut rig = Rig::new().await;
    rig.store.put("mail", [1]);
    rig.store.stall();
    let ticket = rig.request("mail", secs(60));
    settle().await;

    rig.stop();
    assert_eq!(ticket.await, Answer::Closed);
    assert_eq!(rig.handle.request(["mail"], (), Patience::Now).unwrap_err(), Refused::Closed);
    rig.store.go_on();
    rig.tasks.join_next().await.unwrap().unwrap();

    assert_eq!(rig.store.released(), [1]);
}

#[tokio::test(start_paused = true)]
async fn a_dispatcher_that_dies_leaves_no_demand_waiting() {
    let mut rig = Rig::new().await;
    let ticket = rig.request("mail", secs(60));
    settle().await;

    rig.tasks.abort_all();

    assert_eq!(ticket.await, Answer::Closed);
}

#[tokio::test(start_paused = true)]
async fn keys_without_demand_are_not_waited_for() {
    let rig = Rig::new().await;
    let ticket = rig.request("mail", secs(60));
    settle().await;
    assert_eq!(rig.hub.waited(), ["mail"]);

    drop(ticket);
    settle().await;

    assert!(rig.hub.waited().is_empty());
}

#[tokio::test(start_paused = true)]
async fn where_nobody_waits_a_demand_is_answered_at_once() {
    let rig = Rig::with(DispatcherOptions::default().waits(false), true).await;
    let begun = now();

    assert_eq!(rig.request("mail", secs(30)).await, Answer::Nothing);
    rig.store.put("mail", [1]);
    assert_eq!(rig.request("mail", secs(30)).await, Answer::Lease(1));

    assert_eq!(now(), begun);
}

#[tokio::test(start_paused = true)]
async fn a_wait_is_never_longer_than_max_wait() {
    let rig = Rig::with(DispatcherOptions::default().max_wait(secs(30)), true).await;
    let begun = now();

    assert_eq!(rig.request("mail", secs(600)).await, Answer::Nothing);

    assert_eq!((now() - begun).as_secs(), 30);
}
