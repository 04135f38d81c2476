//! Keeps the leases of the jobs that are held, and learns which of them should stop.
//!
//! Sleeps while nothing is held for long: jobs that are over within a third of their lease are
//! never renewed.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tracing::warn;

use super::crew::{Crew, claim_of};
use crate::jobs::job::Held;
use crate::jobs::settle::Settler;

/// For ever.
pub(super) async fn keep(settler: &Settler, crew: &Crew) {
    loop {
        let asked = tokio::select! {
            () = sleep(crew.lease / 6) => false,
            () = crew.attend.notified() => true,
        };
        // With two ticks in a third of the lease, each job is renewed at every other one.
        let held = due(crew, if asked { Duration::ZERO } else { crew.lease / 4 });
        if !held.is_empty() {
            renew(settler, crew, held).await;
        }
    }
}

/// The jobs that were not renewed for so long.
fn due(crew: &Crew, age: Duration) -> Vec<Arc<Held>> {
    let now = Instant::now();
    let old = |renewed: Instant| now.saturating_duration_since(renewed) >= age;
    crew.held().values().filter(|holding| old(holding.renewed)).map(|holding| Arc::clone(&holding.job)).collect()
}

async fn renew(settler: &Settler, crew: &Crew, held: Vec<Arc<Held>>) {
    let began = Instant::now();
    let tokens = held.iter().map(|job| job.token).collect();
    // Waits no longer than the leases last: then they are lost, whatever the answer would be.
    let renewing = tokio::time::timeout(crew.lease, settler.renew(tokens, crew.lease)).await;
    let renewed = match renewing {
        Ok(Ok(renewed)) => renewed,
        Ok(Err(error)) => {
            warn!(%error, worker = &*crew.name, "could not renew leases");
            return;
        }
        Err(_) => {
            warn!(worker = &*crew.name, "could not renew leases in time");
            return;
        }
    };
    for (job, renewed) in held.into_iter().zip(renewed) {
        if renewed.lost {
            // Settled meanwhile, perhaps, and then it is not held any more.
            if crew.held().contains_key(&claim_of(&job)) && !job.settled.load(Ordering::Relaxed) {
                job.lost.cancel();
                job.cancel.cancel();
            }
            continue;
        }
        if let Some(holding) = crew.held().get_mut(&claim_of(&job)) {
            holding.renewed = began;
        }
        if renewed.cancel_requested {
            job.cancel_requested.store(true, Ordering::Relaxed);
            job.cancel.cancel();
        }
    }
}
