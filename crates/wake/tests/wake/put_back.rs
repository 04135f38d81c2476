//! What becomes of a ring when its waiter goes, or its look fails or is filled.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use reveille_wake::{Armed, Cause, Hub, HubOptions, Outcome};

use crate::hub::waiter;
use crate::rig::proven;

type Key = &'static str;

fn hub() -> Hub<Key> {
    let (hub, _runner) = Hub::new(HubOptions::default());
    hub.set_link(proven());
    hub
}

/// Whether the waiter is rung; like a losing branch of `select!`, the future is dropped.
fn is_woken(armed: &mut Armed<Key>) -> bool {
    poll(&mut pin!(armed.woken())).is_ready()
}

fn poll<F: Future>(future: &mut std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

/// B12, B18: one ring for a hundred rows; everybody looks until a look is under-filled.
#[test]
fn rows_of_one_commit_reach_as_many_as_want_them() {
    let hub = hub();
    let mut waiters: Vec<_> = (0..100).map(|_| waiter(&hub)).collect();
    let mut rows = 100_usize;

    hub.wake(&"mail", Cause::Pushed);
    for armed in &mut waiters {
        assert!(is_woken(armed), "{rows} rows left and nobody knows");
        let claim = armed.claim();
        rows -= 1;
        claim.found(Outcome::Filled);
    }

    assert_eq!(rows, 0);
}

/// B13: the one that was woken goes away before it looks.
#[test]
fn a_waiter_that_goes_before_its_look_takes_no_ring_with_it() {
    let hub = hub();
    let (first, mut second) = (waiter(&hub), waiter(&hub));
    hub.wake(&"mail", Cause::Pushed);

    drop(first);

    assert!(is_woken(&mut second));
}

/// B13: the future is dropped after it was woken and before it noticed.
#[test]
fn a_wait_dropped_before_it_noticed_its_ring_is_rung_when_it_waits_again() {
    let hub = hub();
    let mut armed = waiter(&hub);
    {
        let mut waiting = pin!(armed.woken());
        assert!(poll(&mut waiting).is_pending());
        hub.wake(&"mail", Cause::Retry);
    }

    assert_eq!(poll(&mut pin!(armed.woken())), Poll::Ready(Cause::Retry));
}

/// B13: the database answered with an error. The others have looked for themselves, perhaps while
/// the rows were locked.
#[test]
fn a_failed_look_puts_its_ring_back_for_everybody() {
    let hub = hub();
    let (mut first, mut second) = (waiter(&hub), waiter(&hub));
    hub.wake(&"mail", Cause::Due);
    let claim = first.claim();
    second.claim().found(Outcome::Empty);
    assert!(!is_woken(&mut second));

    drop(claim);
    assert_eq!(poll(&mut pin!(first.woken())), Poll::Ready(Cause::Due));
    drop(first);

    assert_eq!(poll(&mut pin!(second.woken())), Poll::Ready(Cause::Due));
}

#[test]
fn a_filled_look_of_a_lone_waiter_rings_itself_again() {
    let hub = hub();
    let mut armed = waiter(&hub);
    hub.wake(&"mail", Cause::Pushed);

    armed.claim().found(Outcome::Filled);

    assert!(is_woken(&mut armed));
    assert_eq!(armed.claim().cause(), Cause::More);
}
