//! The time from a wake until the last waiter of the key runs, in one process:
//! `cargo run -p reveille-wake --release --example wake_latency`
use std::time::{Duration, Instant};

use reveille_wake::{Cause, Hub, HubOptions, Outcome, Waited};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

const WAKES: usize = 5_000;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    for waiters in [1, 64] {
        let mut times = measure(waiters).await;
        times.sort_unstable();
        let at = |share: usize| times[(times.len() - 1) * share / 100];
        println!("{waiters:>2} waiters: p50 {:?}, p99 {:?}, max {:?}", at(50), at(99), at(100));
    }
}

/// Wakes from outside the runtime, as a listener on its own thread would. Each wake comes after all
/// waiters have claimed for the last one.
async fn measure(waiters: usize) -> Vec<Duration> {
    let (hub, runner) = Hub::new(HubOptions::default());
    hub.set_link(reveille_wake::Link::Proven { since: Instant::now() });
    let mut tasks = JoinSet::new();
    tasks.spawn(runner.run(std::future::pending()));
    let (report, mut reports) = mpsc::channel(waiters);
    for _ in 0..waiters {
        let (hub, report) = (hub.clone(), report.clone());
        tasks.spawn(async move {
            let mut armed = hub.arm("mail").expect("there is room");
            loop {
                let waited = armed.wait(Instant::now() + Duration::from_secs(60)).await;
                let ran = Instant::now();
                armed.claim().found(Outcome::Empty); // before the report: this claim answers every wake so far
                if waited == Waited::Woken(Cause::Pushed) && report.send(ran).await.is_err() {
                    return;
                }
            }
        });
    }
    tokio::task::spawn_blocking(move || {
        let wake = || {
            std::thread::sleep(Duration::from_micros(200)); // lets all waiters fall asleep again
            let woken_at = Instant::now();
            hub.wake(&"mail", Cause::Pushed);
            let ran = std::iter::repeat_with(|| reports.blocking_recv().expect("a waiter runs")).take(waiters);
            ran.max().map_or(Duration::ZERO, |last| last.saturating_duration_since(woken_at))
        };
        std::iter::repeat_with(wake).take(WAKES).collect()
    })
    .await
    .expect("it measures")
}
