//! The loop of a worker: demands as many jobs as it has room for, and gives each a task.

use std::sync::Arc;
use std::time::Duration;

use reveille_wake::{Answer, Patience};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use tracing::warn;

use super::state::WorkerState;
use super::{Stop, keeper, slot};
use crate::jobs::Parts;
use crate::jobs::claim::Claimed;
use crate::jobs::event::JobEvent;
use crate::jobs::job::Job;
use crate::jobs::ready::Queue;

/// How long one demand stands; then it is made again.
const PATIENCE: Duration = Duration::from_secs(3600);
/// After a demand that failed or was refused.
const PAUSE: Duration = Duration::from_secs(1);

/// Runs until the worker is stopped. `ended` is set when the last lease is settled or given back.
pub(super) async fn run(
    parts: Arc<Parts>,
    worker: Arc<WorkerState>,
    stop: Stop,
    tracker: TaskTracker,
    ended: watch::Sender<bool>,
) {
    let notifier = &parts.context.notifier;
    notifier.enlist(&worker.name, &worker.attend);
    let keeping = keeper::keep(&parts.settler, &worker);
    let working = async {
        let end = parts.context.service.end().clone();
        tokio::select! {
            () = demand_for_ever(&parts, &worker, &stop, &tracker) => {}
            () = stop.claims.cancelled() => {}
            () = end.cancelled() => {}
        }
        // Leases are kept until the handlers have ended. When the jobs close, no drain stops the
        // handlers, so this does.
        tokio::select! {
            () = tracker.wait() => {}
            () = end.cancelled() => {
                stop.claims.cancel();
                stop.now.cancel();
                tracker.close();
                tracker.wait().await;
            }
        }
    };
    tokio::select! {
        () = keeping => {}
        () = working => {}
    }
    notifier.dismiss(&worker.name);
    ended.send_replace(true);
}

async fn demand_for_ever(parts: &Arc<Parts>, worker: &Arc<WorkerState>, stop: &Stop, tracker: &TaskTracker) {
    let queues: Arc<[Queue]> = worker.queues.iter().map(|(queue, _)| Arc::clone(queue)).collect();
    let handle = parts.claimer.handle();
    loop {
        while worker.want() == 0 {
            worker.freed.notified().await;
        }
        let until = std::time::Instant::now() + PATIENCE;
        let ticket = match handle.request(Arc::clone(&queues), Arc::clone(worker), Patience::Until(until)) {
            Ok(ticket) => ticket,
            Err(refused) => {
                warn!(%refused, worker = &*worker.name, retry_in = ?PAUSE, "could not ask for jobs");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        match ticket.await {
            Answer::Lease(jobs) => hand_out(parts, worker, stop, tracker, jobs),
            Answer::Nothing => {}
            Answer::Failed => tokio::time::sleep(PAUSE).await,
            Answer::Refused(refused) => {
                warn!(%refused, worker = &*worker.name, retry_in = ?PAUSE, "could not wait for jobs");
                tokio::time::sleep(PAUSE).await;
            }
            Answer::Closed => std::future::pending().await,
        }
    }
}

fn hand_out(parts: &Arc<Parts>, worker: &Arc<WorkerState>, stop: &Stop, tracker: &TaskTracker, mut jobs: Vec<Claimed>) {
    let now = Instant::now();
    worker.counts.claimed(jobs.len());
    jobs.sort_by_key(|job| (job.priority, job.was_due()));
    for claimed in jobs {
        let event =
            JobEvent::Claimed { job: claimed.about.clone(), worker: Arc::clone(&worker.name), waited: claimed.waited };
        parts.context.reporter.emit(&event);
        let (job, args) = Job::new(&parts.context, claimed);
        worker.hold(&job.held, now);
        tracker.spawn(slot::attempt(Arc::clone(parts), Arc::clone(worker), stop.clone(), job, args));
    }
}
