//! What becomes of a wake when its waiter goes, or its claim fails or is filled.

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

/// Whether the waiter is woken. The future is dropped, like a losing branch of `select!`.
fn is_woken(armed: &mut Armed<Key>) -> bool {
    poll(&mut pin!(armed.woken())).is_ready()
}

fn poll<F: Future>(future: &mut std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

/// B12, B18: one wake for a hundred rows; every waiter claims until a claim is under-filled.
#[test]
fn rows_of_one_commit_reach_as_many_as_want_them() {
    let hub = hub();
    let mut waiters: Vec<_> = (0..100).map(|_| waiter(&hub)).collect();
    let mut rows = 100_usize;

    hub.wake(&"mail", Cause::Pushed);
    for armed in &mut waiters {
        assert!(is_woken(armed), "{rows} rows are left, and a waiter sleeps");
        let claim = armed.claim();
        rows -= 1;
        claim.found(Outcome::Filled);
    }

    assert_eq!(rows, 0);
}

/// B13: the woken waiter goes away before it claims.
#[test]
fn a_waiter_that_goes_before_its_claim_takes_no_wake_with_it() {
    let hub = hub();
    let (first, mut second) = (waiter(&hub), waiter(&hub));
    hub.wake(&"mail", Cause::Pushed);

    drop(first);

    assert!(is_woken(&mut second));
}

/// B13: the future is dropped after it was woken and before it noticed.
#[test]
fn a_wait_dropped_before_it_noticed_its_wake_is_woken_when_it_waits_again() {
    let hub = hub();
    let mut armed = waiter(&hub);
    {
        let mut waiting = pin!(armed.woken());
        assert!(poll(&mut waiting).is_pending());
        hub.wake(&"mail", Cause::Released);
    }

    assert_eq!(poll(&mut pin!(armed.woken())), Poll::Ready(Cause::Released));
}

/// B13: the database answered with an error. The other waiters have claimed, perhaps while the rows
/// were locked.
#[test]
fn a_failed_claim_puts_its_wake_back_for_every_waiter() {
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
fn a_filled_claim_of_a_lone_waiter_wakes_it_again() {
    let hub = hub();
    let mut armed = waiter(&hub);
    hub.wake(&"mail", Cause::Pushed);

    armed.claim().found(Outcome::Filled);

    assert!(is_woken(&mut armed));
    assert_eq!(armed.claim().cause(), Cause::More);
}
