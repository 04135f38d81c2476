//! Keeps the leases of the jobs that are held, and learns which of them should stop.
//!
//! Sleeps while nothing is held for long: jobs that are over within a third of their lease are
//! never renewed.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tracing::warn;

use super::shared::{WorkerShared, claim_of};
use crate::jobs::job::Held;
use crate::jobs::settle::Settler;

/// For ever.
pub(super) async fn keep(settler: &Settler, worker_shared: &WorkerShared) {
    loop {
        let asked = tokio::select! {
            () = sleep(worker_shared.lease / 6) => false,
            () = worker_shared.attend.notified() => true,
        };
        // With two ticks in a third of the lease, each job is renewed at every other one.
        let held = due(worker_shared, if asked { Duration::ZERO } else { worker_shared.lease / 4 });
        if !held.is_empty() {
            renew(settler, worker_shared, held).await;
        }
    }
}

/// The jobs that were not renewed for so long.
fn due(worker_shared: &WorkerShared, age: Duration) -> Vec<Arc<Held>> {
    let now = Instant::now();
    let old = |renewed: Instant| now.saturating_duration_since(renewed) >= age;
    worker_shared
        .held()
        .values()
        .filter(|holding| old(holding.renewed))
        .map(|holding| Arc::clone(&holding.job))
        .collect()
}

async fn renew(settler: &Settler, worker_shared: &WorkerShared, held: Vec<Arc<Held>>) {
    let began = Instant::now();
    let tokens = held.iter().map(|job| job.token).collect();
    // Waits no longer than the leases last: then they are lost, whatever the answer would be.
    let renewing = tokio::time::timeout(worker_shared.lease, settler.renew(tokens, worker_shared.lease)).await;
    let renewed = match renewing {
        Ok(Ok(renewed)) => renewed,
        Ok(Err(error)) => {
            warn!(%error, worker = &*worker_shared.name, "could not renew leases");
            return;
        }
        Err(_) => {
            warn!(worker = &*worker_shared.name, "could not renew leases in time");
            return;
        }
    };
    for (job, renewed) in held.into_iter().zip(renewed) {
        if renewed.lost {
            // Settled meanwhile, perhaps, and then it is not held any more.
            if worker_shared.held().contains_key(&claim_of(&job)) && !job.settled.load(Ordering::Relaxed) {
                job.lost.cancel();
                job.cancel.cancel();
            }
            continue;
        }
        if let Some(holding) = worker_shared.held().get_mut(&claim_of(&job)) {
            holding.renewed = began;
        }
        if renewed.cancel_requested {
            job.cancel_requested.store(true, Ordering::Relaxed);
            job.cancel.cancel();
        }
    }
}
