//! Competing consumers: who gets a ring, and what becomes of it.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use reveille_wake::{Armed, Cause, Hub, HubOptions, Outcome, Policy};

use crate::hub::waiter;
use crate::rig::proven;

type Key = &'static str;

fn hub() -> Hub<Key> {
    let (hub, _runner) = Hub::new(HubOptions::default().policy(Policy::One));
    hub.set_link(proven());
    hub
}

/// Whether the waiter is rung; like a losing branch of `select!`, the future is dropped.
fn is_rung(armed: &mut Armed<Key>) -> bool {
    matches!(pin!(armed.rung()).poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(_))
}

/// Three that sleep: one after another they were polled, and their futures live on.
macro_rules! asleep {
    ($($armed:ident),*) => {
        $(let mut $armed = pin!($armed.rung());
          assert!(poll(&mut $armed.as_mut()).is_pending());)*
    };
}

fn poll<F: Future>(future: &mut std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn a_ring_wakes_the_one_that_has_waited_longest() {
    let hub = hub();
    let (mut first, mut second) = (waiter(&hub), waiter(&hub));
    asleep!(second, first);

    hub.ring(&"mail", Cause::Pushed);

    assert_eq!(poll(&mut first.as_mut()), Poll::Ready(Cause::Pushed));
    assert!(poll(&mut second.as_mut()).is_pending());
}

/// One push, one look: the under-filled look of the one that was woken ends it.
#[test]
fn one_push_costs_one_look() {
    let hub = hub();
    let mut waiters: Vec<_> = (0..64).map(|_| waiter(&hub)).collect();
    let rung = waiters.iter_mut().filter_map(|armed| is_rung(armed).then_some(())).count();
    assert_eq!(rung, 0);

    hub.ring(&"mail", Cause::Pushed);
    let mut looks = 0;
    for _ in 0..3 {
        for armed in &mut waiters {
            if is_rung(armed) {
                looks += 1;
                armed.look().found(Outcome::of(1, 10));
            }
        }
    }

    assert_eq!(looks, 1);
}

/// B12, B18: one ring for a hundred rows; the cascade goes on until a look is under-filled.
#[test]
fn rows_of_one_commit_reach_as_many_as_want_them() {
    let hub = hub();
    let mut waiters: Vec<_> = (0..100).map(|_| waiter(&hub)).collect();
    let mut rows = 100_usize;

    hub.ring(&"mail", Cause::Pushed);
    for armed in &mut waiters {
        assert!(is_rung(armed), "{rows} rows left and nobody knows");
        let look = armed.look();
        rows -= 1;
        look.found(Outcome::Filled);
    }

    assert_eq!(rows, 0);
}

/// B13: the one that was woken goes away before it looks.
#[test]
fn a_baton_dropped_before_the_look_passes_to_the_next() {
    let hub = hub();
    let (mut first, mut second) = (waiter(&hub), waiter(&hub));
    {
        asleep!(second);
        assert!(!is_rung(&mut first));
        hub.ring(&"mail", Cause::Pushed); // goes to the second: the first does not sleep
        assert_eq!(poll(&mut second.as_mut()), Poll::Ready(Cause::Pushed));
    }

    drop(second);

    assert!(is_rung(&mut first));
}

/// B13: the future is dropped after it was woken and before it noticed.
#[test]
fn a_wait_dropped_before_it_noticed_its_ring_passes_it_on() {
    let hub = hub();
    let (mut first, mut second) = (waiter(&hub), waiter(&hub));
    asleep!(second);
    {
        asleep!(first);
        hub.ring(&"mail", Cause::Retry);
        assert!(poll(&mut second.as_mut()).is_pending(), "the first has waited longer");
    }

    assert_eq!(poll(&mut second.as_mut()), Poll::Ready(Cause::Retry));
}

/// B13: the database answered with an error.
#[test]
fn a_failed_look_puts_its_ring_back() {
    let hub = hub();
    let (mut first, mut second) = (waiter(&hub), waiter(&hub));
    hub.ring(&"mail", Cause::Due);
    assert!(is_rung(&mut first));
    asleep!(second);

    drop(first.look());

    assert_eq!(poll(&mut second.as_mut()), Poll::Ready(Cause::Due));
}

#[test]
fn a_filled_look_of_a_lone_waiter_rings_itself_again() {
    let hub = hub();
    let mut armed = waiter(&hub);
    hub.ring(&"mail", Cause::Pushed);

    armed.look().found(Outcome::Filled);

    assert!(is_rung(&mut armed));
    assert_eq!(armed.look().cause(), Cause::More);
}

/// With `All` the others have looked for themselves and know nothing of a ring that one look put back.
#[test]
fn with_all_a_ring_put_back_outlives_its_waiter() {
    let (hub, _runner) = Hub::new(HubOptions::default().policy(Policy::All));
    hub.set_link(proven());
    let (mut first, mut second) = (waiter(&hub), waiter(&hub));
    asleep!(second);

    drop(first.look());
    assert!(poll(&mut second.as_mut()).is_pending());
    drop(first);

    assert_eq!(poll(&mut second.as_mut()), Poll::Ready(Cause::Asked));
}
