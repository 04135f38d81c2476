//! The loop of a worker: asks for as many jobs as it has room for, and gives each a task.

use std::sync::Arc;
use std::time::Duration;

use reveille_wake::{Answer, Patience};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use tracing::warn;

use super::shared::WorkerShared;
use super::{Stop, keeper, slot};
use crate::jobs::Parts;
use crate::jobs::claim::Claimed;
use crate::jobs::event::JobEvent;
use crate::jobs::job::Job;
use crate::jobs::ready::Queue;

/// How long one demand stands; then it is made again.
const PATIENCE: Duration = Duration::from_secs(3600);
/// After looks that could not be asked for.
const PAUSE: Duration = Duration::from_secs(1);

/// Until it is told to stop. `ended` is told when the last lease was let go.
pub(super) async fn run(
    parts: Arc<Parts>,
    worker_shared: Arc<WorkerShared>,
    stop: Stop,
    tracker: TaskTracker,
    ended: watch::Sender<bool>,
) {
    let notifier = &parts.context.notifier;
    notifier.enlist(&worker_shared.name, &worker_shared.attend);
    let keeping = keeper::keep(&parts.settler, &worker_shared);
    let working = async {
        let end = parts.context.service.end().clone();
        tokio::select! {
            () = ask_for_ever(&parts, &worker_shared, &stop, &tracker) => {}
            () = stop.claims.cancelled() => {}
            () = end.cancelled() => {}
        }
        // What runs is kept alive until it is over; when everything closes, nobody drains.
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
    notifier.dismiss(&worker_shared.name);
    ended.send_replace(true);
}

async fn ask_for_ever(parts: &Arc<Parts>, worker_shared: &Arc<WorkerShared>, stop: &Stop, tracker: &TaskTracker) {
    let queues: Arc<[Queue]> = worker_shared.queues.iter().map(|(queue, _)| Arc::clone(queue)).collect();
    let handle = parts.claimer.handle();
    loop {
        while worker_shared.want() == 0 {
            worker_shared.freed.notified().await;
        }
        let until = std::time::Instant::now() + PATIENCE;
        let ticket = match handle.request(Arc::clone(&queues), Arc::clone(worker_shared), Patience::Until(until)) {
            Ok(ticket) => ticket,
            Err(refused) => {
                warn!(%refused, worker = &*worker_shared.name, retry_in = ?PAUSE, "could not ask for jobs");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        match ticket.await {
            Answer::Lease(jobs) => hand_out(parts, worker_shared, stop, tracker, jobs),
            Answer::Nothing => {}
            Answer::Failed => tokio::time::sleep(PAUSE).await,
            Answer::Refused(refused) => {
                warn!(%refused, worker = &*worker_shared.name, retry_in = ?PAUSE, "could not wait for jobs");
                tokio::time::sleep(PAUSE).await;
            }
            Answer::Closed => std::future::pending().await,
        }
    }
}

fn hand_out(
    parts: &Arc<Parts>,
    worker_shared: &Arc<WorkerShared>,
    stop: &Stop,
    tracker: &TaskTracker,
    mut jobs: Vec<Claimed>,
) {
    let now = Instant::now();
    worker_shared.took(jobs.len());
    jobs.sort_by_key(|job| (job.priority, job.was_due()));
    for claimed in jobs {
        let event = JobEvent::Claimed {
            job: claimed.about.clone(),
            worker: Arc::clone(&worker_shared.name),
            waited: claimed.waited,
        };
        parts.context.reporter.emit(&event);
        let (job, args) = Job::new(&parts.context, claimed);
        worker_shared.hold(&job.held, now);
        tracker.spawn(slot::attempt(Arc::clone(parts), Arc::clone(worker_shared), stop.clone(), job, args));
    }
}
