//! Arm, look, wait.

use shuttle::thread;

use crate::table::{Order, Table, schedules};

/// Two rows, two commits, two consumers: each gets one, or shuttle reports who sleeps for ever.
fn everybody_is_woken(order: Order) {
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
fn no_ring_is_lost_between_look_and_wait() {
    shuttle::check_random(|| everybody_is_woken(Order::ArmThenClaim), schedules());
}

#[test]
fn a_few_preemptions_lose_no_ring_either() {
    shuttle::check_pct(|| everybody_is_woken(Order::ArmThenClaim), schedules(), 3);
}

/// B1: the same test catches the seed's order, so it would catch ours.
#[test]
fn arming_after_the_look_is_caught() {
    caught(|| everybody_is_woken(Order::ClaimThenArm));
}

fn caught(scenario: impl Fn() + Send + Sync + 'static) {
    let run = std::panic::AssertUnwindSafe(|| shuttle::check_random(scenario, schedules()));
    let panic = std::panic::catch_unwind(run).expect_err("the broken order must lose a wake");
    let text = panic.downcast_ref::<String>().cloned().unwrap_or_default();
    assert!(text.contains("deadlock"), "it failed for another reason: {text}");
}

/// A newcomer that finds a key clean and a ring that makes it dirty: either the newcomer looks, or
/// it is rung.
#[test]
fn a_newcomer_that_need_not_look_misses_nothing() {
    shuttle::check_random(
        || {
            let table = Table::new();
            table.push(1);
            table.consume(Order::ArmThenClaim); // leaves the key with a filled look: not clean
            let first = table.clone();
            let looker = thread::spawn(move || first.consume(Order::ArmThenClaim));
            let second = table.clone();
            let newcomer = thread::spawn(move || second.consume(Order::ArmThenClaim));
            table.push(2);
            looker.join().expect("it ends");
            newcomer.join().expect("it ends");
        },
        schedules(),
    );
}
