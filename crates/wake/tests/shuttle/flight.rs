//! One at a time, and nothing noted meanwhile is lost.

use std::sync::Arc;

use reveille_wake::{Finish, Flight, Flights, Start};
use shuttle::sync::Mutex;
use shuttle::thread;

use crate::table::schedules;

/// What was asked for and what a run has seen of it.
#[derive(Default)]
struct Seen {
    asked: u32,
    served: u32,
    running: bool,
}

fn run(flight: Flight<u8>, seen: &Mutex<Seen>) {
    let mut flight = flight;
    loop {
        let before = {
            let mut seen = seen.lock().expect("it ends");
            assert!(!seen.running, "two run at once");
            seen.running = true;
            seen.asked
        };
        thread::yield_now();
        {
            let mut seen = seen.lock().expect("it ends");
            seen.served = before;
            seen.running = false;
        }
        match flight.finish() {
            Finish::Idle => return,
            Finish::Again(again) => flight = again,
        }
    }
}

/// B2: whoever asks while a look runs gets another look.
#[test]
fn a_request_that_meets_a_running_look_is_served_by_another() {
    shuttle::check_random(
        || {
            let flights = Flights::new(|_: &u8| panic!("nobody gave up"));
            let seen = Arc::new(Mutex::new(Seen::default()));
            let threads: Vec<_> = (0..3)
                .map(|_| {
                    let (flights, seen) = (flights.clone(), Arc::clone(&seen));
                    thread::spawn(move || {
                        seen.lock().expect("it ends").asked += 1;
                        if let Start::Go(flight) = flights.start(7) {
                            run(flight, &seen);
                        }
                    })
                })
                .collect();
            for thread in threads {
                thread.join().expect("it ends");
            }
            let seen = seen.lock().expect("it ends");
            assert_eq!((seen.served, flights.len()), (seen.asked, 0));
        },
        schedules(),
    );
}

/// B31: a guard that is dropped frees its key, and hands on what it noted.
#[test]
fn a_dropped_guard_frees_its_key_and_rings_for_what_it_noted() {
    shuttle::check_random(
        || {
            let rung = Arc::new(Mutex::new(0));
            let again = Arc::clone(&rung);
            let flights = Flights::new(move |_: &u8| *again.lock().expect("it ends") += 1);
            let other = flights.clone();
            let noted = thread::spawn(move || matches!(other.start(7), Start::Noted));

            drop(flights.start(7));
            let noted = noted.join().expect("it ends");

            assert_eq!(flights.len(), 0);
            assert!(!noted || *rung.lock().expect("it ends") == 1, "what was noted is forgotten");
        },
        schedules(),
    );
}
