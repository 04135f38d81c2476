//! Arm, claim, wait: in this order, no wake is lost.

use shuttle::thread;

use crate::table::{Order, Table, schedules};

/// Two rows, two commits, two consumers: each gets one, or shuttle reports which one sleeps for
/// ever.
fn both_consumers_get_a_row(order: Order) {
    let table = Table::new();
    let mut threads = Vec::new();
    for _ in 0..2 {
        let consumer = table.clone();
        threads.push(thread::spawn(move || consumer.consume(order)));
        let producer = table.clone();
        threads.push(thread::spawn(move || producer.push(1)));
    }
    for thread in threads {
        thread.join().expect("it ends");
    }
    assert_eq!((*table.rows.lock().expect("it ends"), table.hub.waiters()), (0, 0));
}

#[test]
fn no_wake_is_lost_between_claim_and_wait() {
    shuttle::check_random(|| both_consumers_get_a_row(Order::ArmThenClaim), schedules());
}

#[test]
fn a_few_preemptions_lose_no_wake_either() {
    shuttle::check_pct(|| both_consumers_get_a_row(Order::ArmThenClaim), schedules(), 3);
}

/// B1: the same test catches the wrong order.
#[test]
fn arming_after_the_claim_is_caught() {
    caught(|| both_consumers_get_a_row(Order::ClaimThenArm));
}

fn caught(scenario: impl Fn() + Send + Sync + 'static) {
    let run = std::panic::AssertUnwindSafe(|| shuttle::check_random(scenario, schedules()));
    let panic = std::panic::catch_unwind(run).expect_err("the broken order must lose a wake");
    let text = panic.downcast_ref::<String>().cloned().unwrap_or_default();
    assert!(text.contains("deadlock"), "it failed for another reason: {text}");
}

/// A newcomer arms a key known to be empty while a push wakes the key: the newcomer either claims
/// or is woken.
#[test]
fn a_newcomer_that_need_not_claim_misses_nothing() {
    shuttle::check_random(
        || {
            let table = Table::new();
            table.push(1);
            table.consume(Order::ArmThenClaim); // a filled claim: the key is not known to be empty
            let first = table.clone();
            let first_waiter = thread::spawn(move || first.consume(Order::ArmThenClaim));
            let second = table.clone();
            let newcomer = thread::spawn(move || second.consume(Order::ArmThenClaim));
            table.push(2);
            first_waiter.join().expect("it ends");
            newcomer.join().expect("it ends");
        },
        schedules(),
    );
}
