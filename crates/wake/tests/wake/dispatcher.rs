//! The loop of a dispatcher: wakes, claim rounds, due times, failures.

use reveille_wake::{Answer, Cause, DispatcherOptions, FallbackCause, Link, Outcome, PollMode};

use crate::rig::{Rig, leases, ms, now, proven, secs, settle};

#[tokio::test(start_paused = true)]
async fn a_push_wakes_a_waiting_demand() {
    let rig = Rig::new().await;
    let ticket = rig.request("mail", secs(60));
    settle().await;

    rig.push("mail", [1]);

    assert_eq!(ticket.await, Answer::Lease(1));
    assert_eq!(rig.store.rounds_of("mail").last().unwrap().1, Cause::Pushed);
}

#[tokio::test(start_paused = true)]
async fn one_push_costs_one_round_for_any_number_of_demands() {
    let rig = Rig::new().await;
    let tickets: Vec<_> = (0..64).map(|_| rig.request("mail", secs(60))).collect();
    settle().await;
    let before = rig.store.rounds();

    rig.push("mail", [1]);
    settle().await;

    assert_eq!((before, rig.store.rounds()), (1, 2));
    assert_eq!(rig.handle.demands(), 64, "63 wait, one has an answer it has not taken");
    drop(tickets);
}

/// B12, B18: a hundred rows, one wake, rounds of ten: the loop goes on until a round is
/// under-filled.
#[tokio::test(start_paused = true)]
async fn rows_of_one_commit_reach_as_many_demands_as_want_them() {
    let rig = Rig::with(DispatcherOptions::default().max_round(10), true).await;
    let tickets: Vec<_> = (0..100).map(|_| rig.request("mail", secs(60))).collect();
    settle().await;
    let begun = now();

    rig.push("mail", 0..100);
    let mut answers = Vec::new();
    for ticket in tickets {
        answers.push(ticket.await);
    }

    assert_eq!(leases(answers), (0..100).collect::<Vec<_>>(), "first come, first served");
    assert_eq!(now(), begun);
}

/// B2: the wake came after the snapshot of the claim.
#[tokio::test(start_paused = true)]
async fn a_wake_during_a_round_forces_one_more_round() {
    let rig = Rig::new().await;
    rig.store.stall();
    let ticket = rig.request("mail", secs(60));
    settle().await;

    rig.push("mail", [1]);
    rig.store.go_on();

    assert_eq!(ticket.await, Answer::Lease(1));
    assert_eq!(rig.store.rounds(), 2);
}

/// The snapshot of a round may be older than the work of a demand that comes during it.
#[tokio::test(start_paused = true)]
async fn a_demand_that_comes_during_a_round_is_in_the_next() {
    let rig = Rig::with(DispatcherOptions::default(), false).await;
    rig.store.stall();
    let first = rig.request("mail", secs(60));
    settle().await;
    rig.store.put("mail", [1, 2]);

    let second = rig.request("mail", secs(60));
    rig.store.go_on();

    assert_eq!((first.await, second.await), (Answer::Lease(1), Answer::Lease(2)));
    assert_eq!(rig.counters.missed(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_due_row_is_handed_out_at_its_time() {
    let rig = Rig::new().await;
    rig.store.put_later("mail", 1, ms(5250)); // before start-up, as far as the dispatcher can tell
    let begun = now();

    assert_eq!(rig.request("mail", secs(60)).await, Answer::Lease(1));

    let late = now() - begun;
    assert!(late >= ms(5250) && late <= ms(5253), "{late:?}");
}

/// B4, B5: several timers, and an unrelated success between them.
#[tokio::test(start_paused = true)]
async fn every_due_row_is_handed_out_at_its_own_time() {
    let rig = Rig::new().await;
    let begun = now();
    for (row, at) in [(1, 2000), (2, 5000), (3, 5500)] {
        rig.store.put_later("mail", row, ms(at));
    }
    rig.push("letters", [9]);
    assert_eq!(rig.request("letters", secs(60)).await, Answer::Lease(9));

    for (row, at) in [(1, 2000), (2, 5000), (3, 5500)] {
        assert_eq!(rig.request("mail", secs(60)).await, Answer::Lease(row));
        let late = now() - begun;
        assert!(late >= ms(at) && late <= ms(at + 3), "row {row} after {late:?}");
    }
}

/// A due time that finds the row postponed is armed again, with the due time that the round found.
#[tokio::test(start_paused = true)]
async fn a_due_time_that_finds_nothing_is_armed_again() {
    let rig = Rig::new().await;
    let begun = now();
    let ticket = rig.request("mail", secs(60));
    settle().await;
    rig.hub.set_due("mail", reveille_wake::DueSource::Heartbeat, Some(secs(1)));

    rig.store.put_later("mail", 1, secs(3));

    assert_eq!(ticket.await, Answer::Lease(1));
    assert!(now() - begun <= ms(3003), "{:?}", now() - begun);
}

/// B13: an error loses no wake, and the loop does not spin.
#[tokio::test(start_paused = true)]
async fn failed_rounds_are_repeated_by_fallback_polling_until_they_succeed() {
    let rig = Rig::new().await;
    let ticket = rig.request("mail", secs(60));
    settle().await;
    rig.store.fail(true);
    rig.push("mail", [1]);
    settle().await;
    assert!(matches!(rig.handle.poll_mode(), PollMode::Fallback { because: FallbackCause::RoundFailed, .. }));
    tokio::time::advance(secs(0)).await;
    let before = rig.store.rounds();
    let begun = now();
    while now() - begun < secs(10) {
        tokio::time::advance(ms(5)).await;
        settle().await;
    }
    let rounds = rig.store.rounds() - before;
    assert!((15..=60).contains(&rounds), "{rounds} rounds in ten seconds");

    rig.store.fail(false);

    assert_eq!(ticket.await, Answer::Lease(1));
}

#[tokio::test(start_paused = true)]
async fn a_demand_whose_rounds_all_failed_is_answered_failed() {
    let rig = Rig::new().await;
    rig.store.fail(true);

    assert_eq!(rig.request("mail", secs(2)).await, Answer::Failed);
    assert_eq!(rig.request_now("mail").await, Answer::Failed);
}

#[tokio::test(start_paused = true)]
async fn a_round_that_hangs_is_given_up() {
    let rig = Rig::with(DispatcherOptions::default().round_timeout(secs(5)), true).await;
    rig.store.stall();
    let begun = now();

    assert_eq!(rig.request_now("mail").await, Answer::Failed);

    assert_eq!((now() - begun).as_secs(), 5);
}

/// B20: another claim holds the row and gives it back without a wake.
#[tokio::test(start_paused = true)]
async fn a_contended_key_is_claimed_from_again_soon() {
    let rig = Rig::new().await;
    rig.store.put("mail", [1]);
    rig.store.hold("mail");
    let ticket = rig.request("mail", secs(60));
    settle().await;
    let begun = now();

    rig.store.let_go("mail");

    assert_eq!(ticket.await, Answer::Lease(1));
    assert!(now() - begun <= ms(15), "{:?}", now() - begun);
}

/// B3: fallback polling leaves an empty key alone for longer and longer, until it is woken.
#[tokio::test(start_paused = true)]
async fn a_wake_beats_the_back_off() {
    let rig = Rig::with(DispatcherOptions::default(), false).await;
    let ticket = rig.request("mail", secs(600));
    settle().await;
    for _ in 0..1000 {
        tokio::time::advance(ms(20)).await;
        settle().await;
    }
    let begun = now();

    rig.push("mail", [1]);

    assert_eq!(ticket.await, Answer::Lease(1));
    assert_eq!(now(), begun);
}

/// However many notifications are forged, rounds per second are bounded.
#[tokio::test(start_paused = true)]
async fn a_flood_of_hints_causes_a_bounded_number_of_rounds() {
    let rig = Rig::new().await;
    let ticket = rig.request("mail", secs(60));
    settle().await;
    for _ in 0..1000 {
        rig.hub.wake(&"mail", Cause::Notified);
        settle().await;
        tokio::time::advance(ms(1)).await;
    }
    let rounds = rig.store.rounds();
    assert!(rounds <= 220, "{rounds} rounds in one second");

    rig.push("mail", [1]);

    assert_eq!(ticket.await, Answer::Lease(1));
}

#[tokio::test(start_paused = true)]
async fn while_the_link_is_lost_unannounced_work_is_found_by_polling() {
    let rig = Rig::new().await;
    let ticket = rig.request("mail", secs(60));
    settle().await;
    rig.hub.set_link(Link::Lost { since: now(), attempts: 0 });
    settle().await;
    assert!(matches!(rig.handle.poll_mode(), PollMode::Fallback { because: FallbackCause::LinkLost, .. }));
    tokio::time::advance(secs(5)).await;
    settle().await;
    let begun = now();

    rig.store.put("mail", [1]); // no wake

    assert_eq!(ticket.await, Answer::Lease(1));
    assert!(now() - begun <= ms(1600), "{:?}", now() - begun);
    assert_eq!(rig.counters.missed(), 1);
}

#[tokio::test(start_paused = true)]
async fn after_a_reconnect_every_key_is_claimed_from_and_fallback_polling_ends() {
    let rig = Rig::new().await;
    let ticket = rig.request("mail", secs(600));
    settle().await;
    rig.hub.set_link(Link::Lost { since: now(), attempts: 0 });
    settle().await;

    rig.hub.set_link(proven());
    settle().await;
    assert_eq!(rig.store.rounds_of("mail").last().unwrap().1, Cause::Reconnected);
    for _ in 0..1500 {
        tokio::time::advance(ms(10)).await;
        settle().await;
    }

    assert_eq!(rig.handle.poll_mode(), PollMode::Long);
    assert_eq!(rig.counters.rounds(Outcome::Failed), 0);
    drop(ticket);
}

/// B15: several dispatchers learn of the loss of one link. B14: each has its own poll mode.
#[tokio::test(start_paused = true)]
async fn a_lost_link_is_seen_by_every_dispatcher() {
    let first = Rig::new().await;
    let (dispatcher, second) =
        reveille_wake::Dispatcher::new(&first.hub, first.store.clone(), DispatcherOptions::default());
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(dispatcher.run(std::future::pending()));
    settle().await;

    first.hub.set_link(Link::Stalled { since: now() });
    settle().await;

    assert!(first.handle.poll_mode().is_fallback() && second.poll_mode().is_fallback());
}
