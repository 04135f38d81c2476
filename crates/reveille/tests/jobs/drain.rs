//! What a drain leaves behind: nothing that is leased.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use reveille::jobs::State;

use crate::support::{Fixture, job, soon, until_blocked};

const LEASED: &str = "reveille.job where nonce is not null";

/// The claim waits for a lock while the drain begins, and takes the job afterwards.
#[tokio::test]
async fn a_drain_waits_for_the_claim_in_flight_and_gives_back_what_it_took() {
    let fixture = Fixture::new().await;
    let id = fixture.enqueue(job("ok")).await;
    let (watcher, barrier) = (fixture.client().await, fixture.client().await);
    barrier.batch_execute("begin; lock table reveille.job").await.unwrap();
    let worker = fixture.worker().start().await.unwrap();
    until_blocked(&watcher, "with clock as materialized").await;
    let claimed = AtomicBool::new(false);

    let draining = async {
        let drained = soon(worker.drain(Duration::from_secs(20))).await;
        assert!(claimed.load(Ordering::SeqCst), "it returned while its claim was still on the way");
        drained
    };
    let claiming = async {
        // Long enough for a drain that waits for nothing.
        for _ in 0..100 {
            watcher.batch_execute("select").await.unwrap();
        }
        claimed.store(true, Ordering::SeqCst);
        barrier.batch_execute("commit").await.unwrap();
    };
    let (drained, ()) = tokio::join!(draining, claiming);

    assert_eq!(fixture.count(LEASED).await, 0);
    assert_eq!((drained.finished, drained.released), (0, 1));
    let back = fixture.explain(id).await;
    assert_eq!((back.state, back.attempt), (State::Ready, 0));
}

/// Whatever the moment at which the drain begins.
#[tokio::test(flavor = "multi_thread")]
async fn a_drain_right_after_an_enqueue_leaves_nothing_leased() {
    let fixture = Fixture::new().await;

    for _ in 0..25 {
        let worker = fixture.worker().start().await.unwrap();
        fixture.enqueue(job("ok")).await;

        soon(worker.drain(Duration::from_secs(20))).await;

        assert_eq!(fixture.count(LEASED).await, 0);
    }
}

/// The bound is kept even when a claim is stuck, and it is unknown whether it claimed something.
#[tokio::test]
async fn a_drain_ends_in_its_time_though_a_claim_hangs() {
    let fixture = Fixture::new().await;
    fixture.enqueue(job("ok")).await;
    let (watcher, barrier) = (fixture.client().await, fixture.client().await);
    barrier.batch_execute("begin; lock table reveille.job").await.unwrap();
    let worker = fixture.worker().start().await.unwrap();
    until_blocked(&watcher, "with clock as materialized").await;

    soon(worker.drain(Duration::from_millis(100))).await;

    barrier.batch_execute("commit").await.unwrap();
}
