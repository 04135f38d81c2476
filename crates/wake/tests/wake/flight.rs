//! The guard that cannot leak.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use reveille_wake::{Finish, Flight, Flights, Start};

fn go(start: Start<u8>) -> Flight<u8> {
    match start {
        Start::Go(flight) => flight,
        Start::Noted => panic!("nothing runs"),
    }
}

fn counting() -> (Flights<u8>, Arc<AtomicUsize>) {
    let again = Arc::new(AtomicUsize::new(0));
    let count = again.clone();
    let flights = Flights::new(move |_: &u8| _ = count.fetch_add(1, Ordering::Relaxed));
    (flights, again)
}

/// B2.
#[test]
fn what_comes_while_it_runs_makes_it_run_once_more() {
    let (flights, _) = counting();
    let flight = go(flights.start(7));
    assert!(matches!(flights.start(7), Start::Noted));
    assert!(matches!(flights.start(7), Start::Noted));

    let Finish::Again(flight) = flight.finish() else { panic!("it was noted") };

    assert!(matches!(flight.finish(), Finish::Idle));
    assert!(flights.is_empty());
}

/// B31: an error, a cancelled future and a panic all drop the guard.
#[test]
fn a_panic_frees_the_key_and_hands_on_what_was_noted() {
    let (flights, again) = counting();
    let inside = flights.clone();
    let panicked = std::thread::spawn(move || {
        let _flight = go(inside.start(7));
        assert!(matches!(inside.start(7), Start::Noted));
        panic!("on purpose");
    });
    assert!(panicked.join().is_err());

    assert!(flights.is_empty());
    assert_eq!(again.load(Ordering::Relaxed), 1);
}

#[test]
fn keys_do_not_wait_for_each_other() {
    let (flights, _) = counting();
    let _first = go(flights.start(1));
    let _second = go(flights.start(2));

    assert_eq!(flights.len(), 2);
}
