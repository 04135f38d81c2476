//! Wakes that are put back: a waiter goes, a claim is filled, a claim fails.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use reveille_wake::{Armed, Outcome};
use shuttle::thread;

use crate::table::{KEY, Order, Table, schedules};

/// B12: one commit, one wake, as many rows as consumers.
#[test]
fn rows_of_one_commit_reach_all_who_want_them() {
    shuttle::check_random(
        || {
            let table = Table::new();
            let consumers: Vec<_> = (0..3)
                .map(|_| {
                    let table = table.clone();
                    thread::spawn(move || table.consume(Order::ArmThenClaim))
                })
                .collect();
            table.push(3);
            for consumer in consumers {
                consumer.join().expect("it ends");
            }
        },
        schedules(),
    );
}

/// B13: a waiter may go away at any moment of its wait.
#[test]
fn a_waiter_that_goes_while_it_is_woken_takes_no_wake_with_it() {
    shuttle::check_random(
        || {
            let table = Table::new();
            let leaver = table.clone();
            let stayer = table.clone();
            let leaves = thread::spawn(move || leave_early(&leaver));
            let stays = thread::spawn(move || stayer.consume(Order::ArmThenClaim));
            table.push(1);
            leaves.join().expect("it ends");
            stays.join().expect("it ends");
        },
        schedules(),
    );
}

/// Claims once without taking anything, waits a little as a branch of `select!` does, and goes
/// away.
fn leave_early(table: &Table) {
    let mut armed = table.hub.arm(KEY).expect("there is room");
    let claim = armed.claim();
    let there_is_more = *table.rows.lock().expect("it ends") > 0;
    claim.found(if there_is_more { Outcome::Filled } else { Outcome::Empty });
    for _ in 0..2 {
        if is_woken(&mut armed) {
            break;
        }
        thread::yield_now();
    }
}

/// Polls once and drops the future, as `select!` does with the branch that loses.
fn is_woken(armed: &mut Armed<u8>) -> bool {
    matches!(pin!(armed.woken()).poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(_))
}

/// B13: a claim fails, and its waiter goes right after it.
#[test]
fn a_claim_that_fails_puts_its_wake_back_for_the_others() {
    shuttle::check_random(
        || {
            let table = Table::new();
            let fails = table.clone();
            let stays = table.clone();
            let failing = thread::spawn(move || {
                shuttle::future::block_on(async {
                    let mut armed = fails.hub.arm(KEY).expect("there is room");
                    armed.woken().await;
                    drop(armed.claim());
                });
            });
            let staying = thread::spawn(move || stays.consume(Order::ArmThenClaim));
            table.push(1);
            failing.join().expect("it ends");
            staying.join().expect("it ends");
        },
        schedules(),
    );
}

/// A claim that is rolled back holds the row while it runs: other claims see nothing meanwhile.
#[test]
fn a_row_that_a_failed_claim_gave_back_is_found() {
    shuttle::check_random(
        || {
            let table = Table::new();
            table.push(1);
            let fails = table.clone();
            let stays = table.clone();
            let failing = thread::spawn(move || {
                let mut armed = fails.hub.arm(KEY).expect("there is room");
                let claim = armed.claim();
                let taken = fails.take();
                *fails.rows.lock().expect("it ends") += taken; // rolled back, which wakes no key
                drop(claim);
            });
            let staying = thread::spawn(move || stays.consume(Order::ArmThenClaim));
            failing.join().expect("it ends");
            staying.join().expect("it ends");
        },
        schedules(),
    );
}
