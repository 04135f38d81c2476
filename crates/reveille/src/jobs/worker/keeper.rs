//! Renews the leases of the jobs that are held, and finds out which of them should stop.
//!
//! Between announced cancellations, jobs that are over within a quarter of their lease are never
//! renewed.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tracing::warn;

use super::state::{WorkerState, claim_of};
use crate::jobs::job::Held;
use crate::jobs::settle::Settler;

/// Renews for ever.
pub(super) async fn keep(settler: &Settler, worker: &WorkerState) {
    loop {
        let at_once = tokio::select! {
            () = sleep(worker.lease / 6) => false,
            () = worker.attend.notified() => true,
        };
        // With two ticks in a third of the lease, each job is renewed at every other one.
        let held = due(worker, if at_once { Duration::ZERO } else { worker.lease / 4 });
        if !held.is_empty() {
            renew(settler, worker, held).await;
        }
    }
}

/// The jobs that were not renewed for so long.
fn due(worker: &WorkerState, age: Duration) -> Vec<Arc<Held>> {
    let now = Instant::now();
    let old = |renewed: Instant| now.saturating_duration_since(renewed) >= age;
    worker.held().values().filter(|holding| old(holding.renewed)).map(|holding| Arc::clone(&holding.job)).collect()
}

async fn renew(settler: &Settler, worker: &WorkerState, held: Vec<Arc<Held>>) {
    let began = Instant::now();
    let tokens = held.iter().map(|job| job.token).collect();
    // Waits no longer than the leases last: after that they are lost in any case.
    let renewing = tokio::time::timeout(worker.lease, settler.renew(tokens, worker.lease)).await;
    let renewed = match renewing {
        Ok(Ok(renewed)) => renewed,
        Ok(Err(error)) => {
            warn!(%error, worker = &*worker.name, "could not renew leases");
            return;
        }
        Err(_) => {
            warn!(worker = &*worker.name, "could not renew leases in time");
            return;
        }
    };
    for (job, renewed) in held.into_iter().zip(renewed) {
        if renewed.lost {
            // It may have been settled meanwhile, and then it is not held any more.
            if worker.held().contains_key(&claim_of(&job)) && !job.settled.load(Ordering::Relaxed) {
                job.lost.cancel();
                job.cancel.cancel();
            }
            continue;
        }
        if let Some(holding) = worker.held().get_mut(&claim_of(&job)) {
            holding.renewed = began;
        }
        if renewed.cancel_requested {
            job.cancel_requested.store(true, Ordering::Relaxed);
            job.cancel.cancel();
        }
    }
}
