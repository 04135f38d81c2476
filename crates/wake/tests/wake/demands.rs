//! Those who ask: deadlines, departures, limits, shutdown.

use reveille_wake::{Answer, DispatcherOptions, Patience, Refused};

use crate::rig::{Rig, leases, ms, now, secs, settle};

#[tokio::test(start_paused = true)]
async fn a_demand_that_will_not_wait_gets_one_look() {
    let rig = Rig::new().await;
    let begun = now();

    assert_eq!(rig.ask_now("mail").await, Answer::Nothing);
    rig.store.put("mail", [1]); // not announced, and the key is believed to be empty
    assert_eq!(rig.ask_now("mail").await, Answer::Lease(1));

    assert_eq!((now(), rig.store.looks()), (begun, 2));
}

#[tokio::test(start_paused = true)]
async fn a_deadline_fires_while_a_look_hangs() {
    let rig = Rig::new().await;
    rig.store.stall();
    let begun = now();

    assert_eq!(rig.request("mail", ms(700)).await, Answer::Nothing);

    assert!(now() - begun <= ms(702), "{:?}", now() - begun);
}

/// B27: the client went away while its claim was under way.
#[tokio::test(start_paused = true)]
async fn a_lease_for_somebody_who_has_gone_is_released() {
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
async fn a_lease_for_somebody_who_has_gone_goes_to_the_next_it_suits() {
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

/// The answer was given, and the client left before it took it.
#[tokio::test(start_paused = true)]
async fn an_answer_nobody_took_is_released() {
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
    let ticket = rig.door.request(["mail", "letters", "parcels"], (), patience).unwrap();
    settle().await;

    rig.push("parcels", [3]);

    assert_eq!(ticket.await, Answer::Lease(3));
}

/// Rounds of two: those a look had no room for are answered by it too if there is nothing, and
/// looked for if there is more.
#[tokio::test(start_paused = true)]
async fn demands_that_will_not_wait_are_all_answered_however_small_the_round() {
    let rig = Rig::with(DispatcherOptions::default().max_round(2), true).await;
    let asks = || (0..7).map(|_| rig.ask_now("mail")).collect::<Vec<_>>();

    for ticket in asks() {
        assert_eq!(ticket.await, Answer::Nothing);
    }
    assert_eq!(rig.store.looks(), 1);

    rig.store.put("mail", 0..5);
    let mut answers = Vec::new();
    for ticket in asks() {
        answers.push(ticket.await);
    }
    assert_eq!(leases(answers), [0, 1, 2, 3, 4]);
    assert_eq!(rig.store.looks(), 1 + 3);
}

/// It came while a look at one of its keys was being prepared; "nothing" must be about all of them.
#[tokio::test(start_paused = true)]
async fn a_demand_that_will_not_wait_is_looked_for_under_all_its_keys() {
    let rig = Rig::new().await;
    let _waits = rig.request("mail", secs(60));
    settle().await;
    rig.store.stall();
    rig.hub.wake(&"mail", reveille_wake::Cause::Notified);
    settle().await;
    rig.hub.wake(&"mail", reveille_wake::Cause::Notified); // the next look is called for before the demand is known
    rig.store.put("parcels", [3]);
    let ticket = rig.door.request(["mail", "parcels"], (), Patience::Now).unwrap();

    rig.store.go_on();

    assert_eq!(ticket.await, Answer::Lease(3));
}

#[tokio::test(start_paused = true)]
async fn limits_are_answered_with_values() {
    let rig = Rig::with(DispatcherOptions::default().max_demands(2), true).await;
    let _first = rig.request("mail", secs(60));
    let _second = rig.request("mail", secs(60));

    assert_eq!(rig.door.request(["mail"], (), Patience::Now).unwrap_err(), Refused::Waiters { limit: 2 });
    let no_keys: [&str; 0] = [];
    assert_eq!(rig.door.request(no_keys, (), Patience::Now).unwrap_err(), Refused::KeysOfDemand { limit: 256 });
    assert_eq!(rig.counters.refused(), 2);
}

#[tokio::test(start_paused = true)]
async fn shutdown_answers_everybody_and_gives_back_what_the_last_look_brought() {
    let mut rig = Rig::new().await;
    rig.store.put("mail", [1]);
    rig.store.stall();
    let ticket = rig.request("mail", secs(60));
    settle().await;

    rig.stop();
    assert_eq!(ticket.await, Answer::Closed);
    assert_eq!(rig.door.request(["mail"], (), Patience::Now).unwrap_err(), Refused::Closed);
    rig.store.go_on();
    rig.tasks.join_next().await.unwrap().unwrap();

    assert_eq!(rig.store.released(), [1]);
}

#[tokio::test(start_paused = true)]
async fn a_dispatcher_that_dies_leaves_nobody_waiting() {
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
