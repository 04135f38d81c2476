//! A probe that counts, on a clock that is stepped.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::task::JoinSet;
use tokio::time::advance;

use super::*;

#[derive(Clone, Default)]
struct Counting {
    probes: Arc<AtomicUsize>,
}

impl Probe for Counting {
    /// Every second answer is no; each takes a tenth of a second.
    async fn answers(&self) -> bool {
        let nth = self.probes.fetch_add(1, Ordering::Relaxed);
        let _ = timeout(Duration::from_millis(100), std::future::pending::<()>()).await;
        nth.is_multiple_of(2)
    }
}

fn started() -> (JoinSet<()>, Counting, Readiness) {
    let counting = Counting::default();
    let (prober, readiness) = Prober::new(counting.clone());
    let mut tasks = JoinSet::new();
    tasks.spawn(prober.run());
    (tasks, counting, readiness)
}

#[tokio::test(start_paused = true)]
async fn a_thousand_health_checks_at_once_cost_one_probe() {
    let (_tasks, counting, readiness) = started();
    let mut checks = JoinSet::new();
    for _ in 0..1000 {
        let readiness = readiness.clone();
        checks.spawn(async move { readiness.is_ready().await });
    }

    let answers = checks.join_all().await;

    assert_eq!(answers, [true; 1000]);
    assert_eq!(counting.probes.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_used_for_a_second_and_then_probed_again() {
    let (_tasks, counting, readiness) = started();

    assert!(readiness.is_ready().await);
    advance(Duration::from_millis(800)).await;
    assert!(readiness.is_ready().await);
    assert_eq!(counting.probes.load(Ordering::Relaxed), 1);
    advance(Duration::from_millis(300)).await;
    assert!(!readiness.is_ready().await);
    assert_eq!(counting.probes.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn health_checks_that_hang_up_cause_no_more_probes() {
    let (_tasks, counting, readiness) = started();

    for _ in 0..100 {
        let _ = timeout(Duration::from_millis(1), readiness.is_ready()).await;
    }

    assert_eq!(counting.probes.load(Ordering::Relaxed), 1);
}
