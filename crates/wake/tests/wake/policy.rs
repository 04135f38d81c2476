//! How many claim rounds a wake costs, and that broadcast keeps every promise of the loop.

use reveille_wake::{Answer, Cause, DispatcherOptions, Link, Policy};

use crate::rig::{Rig, leases, ms, now, secs, settle};

async fn broadcast() -> Rig {
    Rig::with(DispatcherOptions::default().policy(Policy::Broadcast), true).await
}

/// The sizes of the rounds that one row costs while eight demands wait.
async fn rounds_for_one_row(policy: Policy) -> Vec<usize> {
    let rig = Rig::with(DispatcherOptions::default().policy(policy), true).await;
    assert_eq!(rig.request_now("mail").await, Answer::Nothing); // the key is known to be empty
    let _tickets: Vec<_> = (0..8).map(|_| rig.request("mail", secs(60))).collect();
    settle().await;
    let before = rig.store.rounds();

    rig.push("mail", [1]);
    settle().await;

    assert_eq!(before, 1);
    assert!(rig.store.rounds_of("mail")[1..].iter().all(|(_, cause)| *cause == Cause::Pushed || *cause == Cause::More));
    rig.store.round_sizes().split_off(before)
}

#[tokio::test(start_paused = true)]
async fn competing_demands_share_one_round() {
    assert_eq!(rounds_for_one_row(Policy::Competing).await, [8]);
}

#[tokio::test(start_paused = true)]
async fn with_broadcast_every_waiting_demand_makes_a_round_of_its_own() {
    assert_eq!(rounds_for_one_row(Policy::Broadcast).await, [1; 8]);
}

#[tokio::test(start_paused = true)]
async fn with_broadcast_rows_of_one_commit_reach_as_many_demands_as_want_them() {
    let rig = broadcast().await;
    let tickets: Vec<_> = (0..100).map(|_| rig.request("mail", secs(60))).collect();
    settle().await;

    rig.push("mail", 0..100);
    let mut answers = Vec::new();
    for ticket in tickets {
        answers.push(ticket.await);
    }

    assert_eq!(leases(answers), (0..100).collect::<Vec<_>>(), "first come, first served");
}

#[tokio::test(start_paused = true)]
async fn with_broadcast_a_wake_during_an_attempt_makes_every_demand_try_again() {
    let rig = broadcast().await;
    assert_eq!(rig.request_now("mail").await, Answer::Nothing);
    let _tickets: Vec<_> = (0..3).map(|_| rig.request("mail", secs(60))).collect();
    settle().await;
    let before = rig.store.rounds();
    rig.store.stall();
    rig.hub.wake(&"mail", Cause::Notified);
    settle().await;

    rig.hub.wake(&"mail", Cause::Notified); // while the first of three attempts is under way
    rig.store.go_on();
    settle().await;

    assert_eq!(rig.store.rounds() - before, 4, "the first tries twice, the others once after the second wake");
}

#[tokio::test(start_paused = true)]
async fn with_broadcast_a_failed_attempt_is_made_again() {
    let rig = broadcast().await;
    let (first, second) = (rig.request("mail", secs(60)), rig.request("mail", secs(60)));
    settle().await;
    rig.store.fail(true);
    rig.push("mail", [1, 2]);
    settle().await;

    rig.store.fail(false);

    assert_eq!((first.await, second.await), (Answer::Lease(1), Answer::Lease(2)));
}

/// The rows of other demands wait no longer than one attempt each, however often one key is woken.
#[tokio::test(start_paused = true)]
async fn with_broadcast_a_key_woken_without_a_pause_keeps_no_other_waiting() {
    let rig = broadcast().await;
    let _flooded: Vec<_> = (0..8).map(|_| rig.request("mail", secs(600))).collect();
    let other = rig.request("letters", secs(600));
    settle().await;
    let begun = now();
    rig.store.put("letters", [7]);

    let flood = async {
        rig.hub.wake(&"letters", Cause::Notified);
        loop {
            rig.hub.wake(&"mail", Cause::Notified);
            tokio::time::advance(ms(1)).await;
        }
    };
    let answer = tokio::select! {
        answer = other => answer,
        () = flood => unreachable!("it goes on for ever"),
    };

    assert_eq!(answer, Answer::Lease(7));
    assert!(now() - begun <= ms(100), "{:?}", now() - begun);
}

#[tokio::test(start_paused = true)]
async fn with_broadcast_a_flood_of_hints_causes_a_bounded_number_of_rounds() {
    let rig = broadcast().await;
    let _tickets: Vec<_> = (0..20).map(|_| rig.request("mail", secs(60))).collect();
    settle().await;

    for _ in 0..1000 {
        rig.hub.wake(&"mail", Cause::Notified);
        settle().await;
        tokio::time::advance(ms(1)).await;
    }

    let rounds = rig.store.rounds();
    assert!(rounds <= 240, "{rounds} rounds in one second");
}

#[tokio::test(start_paused = true)]
async fn with_broadcast_demands_that_will_not_wait_are_all_answered() {
    let rig = broadcast().await;
    let _waiting = rig.request("mail", secs(60));
    settle().await;
    rig.push("mail", 0..3);
    let tickets: Vec<_> = (0..5).map(|_| rig.request_now("mail")).collect();

    let mut answers = Vec::new();
    for ticket in tickets {
        answers.push(ticket.await);
    }

    assert_eq!(leases(answers), [1, 2], "the first row goes to the one that waited");
}

#[tokio::test(start_paused = true)]
async fn with_broadcast_due_rows_come_at_their_time_and_polling_finds_unannounced_work() {
    let rig = broadcast().await;
    rig.store.put_later("mail", 1, ms(5250));
    let begun = now();
    assert_eq!(rig.request("mail", secs(60)).await, Answer::Lease(1));
    let late = now() - begun;
    assert!(late >= ms(5250) && late <= ms(5253), "{late:?}");

    let ticket = rig.request("mail", secs(60));
    settle().await;
    rig.hub.set_link(Link::Lost { since: now(), attempts: 0 });
    settle().await;
    rig.store.put("mail", [2]); // no wake

    assert_eq!(ticket.await, Answer::Lease(2));
}

/// A demand that goes before its attempt leaves nothing behind, and the others make theirs.
#[tokio::test(start_paused = true)]
async fn with_broadcast_a_demand_that_goes_makes_no_attempt() {
    let rig = broadcast().await;
    assert_eq!(rig.request_now("mail").await, Answer::Nothing);
    let tickets: Vec<_> = (0..3).map(|_| rig.request("mail", secs(60))).collect();
    settle().await;
    let before = rig.store.rounds();
    rig.store.stall();
    rig.hub.wake(&"mail", Cause::Notified);
    settle().await;

    drop(tickets);
    rig.store.go_on();
    settle().await;

    assert_eq!(rig.store.rounds() - before, 1);
    assert_eq!(rig.handle.demands(), 0);
}
