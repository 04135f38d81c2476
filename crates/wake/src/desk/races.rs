//! Answers, deadlines, departures and shutdowns that meet, under every interleaving that shuttle
//! finds.
//!
//! Run with the command in `crates/wake/README.md`.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use super::{Answer, Desk, Patience};
use crate::demand::Ticket;
use crate::source::{Round, RoundFailed, RoundResult, Source};

/// 20,000 unless the build says otherwise.
fn schedules() -> usize {
    option_env!("SHUTTLE_SCHEDULES").and_then(|number| number.parse().ok()).unwrap_or(20_000)
}

/// A source without work.
struct Nothing;

/// Counts when it is dropped, so that none can vanish.
#[derive(Debug)]
struct Lease(Arc<AtomicUsize>);

impl Drop for Lease {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Source for Nothing {
    type Key = u8;
    type Request = ();
    type Lease = Lease;

    async fn claim(&self, _round: Round<u8, ()>) -> Result<RoundResult<u8, Lease>, RoundFailed> {
        Err(RoundFailed)
    }

    async fn release(&self, _leases: Vec<Lease>) {}
}

fn request(desk: &Arc<Desk<Nothing>>, until: Instant) -> Ticket<Nothing> {
    let keys: Arc<[u8]> = Arc::new([7]);
    let accepted = desk.demands().request(keys, (), Patience::Until(until), until);
    let (id, _) = accepted.expect("there is room");
    Ticket::new(Arc::clone(desk), id)
}

/// A lease that meets a deadline and a shutdown is taken, or refused to the dispatcher; never both,
/// never neither.
#[test]
fn an_assignment_that_meets_a_deadline_and_a_shutdown_happens_once_or_not_at_all() {
    shuttle::check_random(
        || {
            let desk = Arc::new(Desk::<Nothing>::new(4));
            let now = Instant::now();
            let ticket = request(&desk, now);
            let id = ticket.id();
            let dropped = Arc::new(AtomicUsize::new(0));
            let client = shuttle::thread::spawn(move || shuttle::future::block_on(ticket));
            let other = Arc::clone(&desk);
            let deadline = shuttle::thread::spawn(move || {
                let wakers = other.demands().expire(now);
                wakers.into_iter().for_each(Waker::wake);
                let wakers = other.demands().close();
                wakers.into_iter().for_each(Waker::wake);
            });

            let given = desk.demands().assign(id, Answer::Lease(Lease(Arc::clone(&dropped))));
            let refused = given.map(|waker| waker.into_iter().for_each(Waker::wake)).is_err();
            let answer = client.join().expect("the client ends");
            deadline.join().expect("the deadline ends");

            assert_eq!(matches!(answer, Answer::Lease(_)), !refused, "{answer:?}, refused: {refused}");
        },
        schedules(),
    );
}

/// A client that goes while a lease is being assigned to it leaves the lease with the dispatcher
/// (B27): `assign` gives it back, or it is among the changes.
#[test]
fn a_client_that_goes_leaves_its_lease_behind() {
    shuttle::check_random(
        || {
            let desk = Arc::new(Desk::<Nothing>::new(4));
            let ticket = request(&desk, Instant::now() + Duration::from_secs(60));
            let id = ticket.id();
            let dropped = Arc::new(AtomicUsize::new(0));
            let client = shuttle::thread::spawn(move || drop(ticket));

            let given = desk.demands().assign(id, Answer::Lease(Lease(Arc::clone(&dropped))));
            client.join().expect("the client ends");
            let returned = desk.demands().take_changes().returned;

            let kept = usize::from(given.is_err()) + returned.len();
            assert_eq!((kept, dropped.load(Ordering::Relaxed)), (1, 0));
        },
        schedules(),
    );
}

/// A demand that arrives while the dispatcher decides to sleep wakes it.
#[test]
fn a_demand_that_meets_a_sleeping_dispatcher_is_seen() {
    shuttle::check_random(
        || {
            let desk = Arc::new(Desk::<Nothing>::new(4));
            let clients_desk = Arc::clone(&desk);
            let client = shuttle::thread::spawn(move || {
                let keys: Arc<[u8]> = Arc::new([7]);
                let accepted = clients_desk.demands().request(keys, (), Patience::Now, Instant::now());
                accepted.expect("there is room").1.into_iter().for_each(Waker::wake);
            });

            let changes =
                shuttle::future::block_on(std::future::poll_fn(|context| desk.demands().poll_changes(context.waker())));

            assert_eq!(changes.arrived.len(), 1);
            client.join().expect("the client ends");
        },
        schedules(),
    );
}

/// An answer is taken once: the second poll of a ticket finds nothing left, rather than the same
/// lease.
#[test]
fn an_answer_is_taken_once() {
    shuttle::check_random(
        || {
            let desk = Arc::new(Desk::<Nothing>::new(4));
            let mut ticket = std::pin::pin!(request(&desk, Instant::now()));
            let dropped = Arc::new(AtomicUsize::new(0));
            let given = desk.demands().assign(ticket.id(), Answer::Lease(Lease(dropped)));
            assert!(given.is_ok());
            let mut context = Context::from_waker(Waker::noop());

            assert!(matches!(ticket.as_mut().poll(&mut context), Poll::Ready(Answer::Lease(_))));
            assert!(matches!(ticket.as_mut().poll(&mut context), Poll::Ready(Answer::Closed)));
        },
        1,
    );
}
