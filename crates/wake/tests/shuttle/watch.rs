//! Many keys, one waiter.

use std::sync::Arc;

use reveille_wake::{Cause, Hub, HubOptions, Link, Outcome};
use shuttle::sync::Mutex;
use shuttle::thread;

use crate::table::{KEY, Order, Table, schedules};

/// Two keys, two commits: the watch sees both, whenever they come.
#[test]
fn a_watch_loses_no_wake_of_any_key() {
    shuttle::check_random(
        || {
            let (hub, _runner) = Hub::new(HubOptions::default());
            hub.set_link(Link::Proven { since: std::time::Instant::now() });
            let rows = Arc::new(Mutex::new([0_usize; 2]));
            let pushes: Vec<_> = (0..2_usize)
                .map(|key| {
                    let (hub, rows) = (hub.clone(), Arc::clone(&rows));
                    thread::spawn(move || {
                        rows.lock().expect("it ends")[key] += 1;
                        hub.wake(&key, Cause::Pushed);
                    })
                })
                .collect();
            let mut watch = hub.watch();
            watch.arm(0).expect("there is room");
            watch.arm(1).expect("there is room");
            let mut taken = 0;
            while taken < 2 {
                shuttle::future::block_on(watch.woken());
                for (key, _) in watch.woken_keys() {
                    watch.begin(&key, Cause::More).expect("it is armed");
                    let found = std::mem::take(&mut rows.lock().expect("it ends")[key]);
                    taken += found;
                    watch.ended(&key, Outcome::of(found, 10));
                }
            }
            for push in pushes {
                push.join().expect("it ends");
            }
        },
        schedules(),
    );
}

/// The wake of a watch that is dropped stays with the other waiters of the key.
#[test]
fn a_watch_that_goes_passes_its_wakes_on() {
    shuttle::check_random(
        || {
            let table = Table::new();
            let stays = table.clone();
            let staying = thread::spawn(move || stays.consume(Order::ArmThenClaim));
            let mut watch = table.hub.watch();
            watch.arm(KEY).expect("there is room");
            let producer = table.clone();
            let pushing = thread::spawn(move || producer.push(1));

            drop(watch);

            pushing.join().expect("it ends");
            staying.join().expect("it ends");
        },
        schedules(),
    );
}
