//! The loop of a worker: asks for as many jobs as it has room for, and gives each a task.

use std::sync::Arc;
use std::time::Duration;

use reveille_wake::{Answer, Patience};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use tracing::warn;

use super::crew::Crew;
use super::{Stop, keeper, slot};
use crate::jobs::Parts;
use crate::jobs::bell::Queue;
use crate::jobs::claim::Claimed;
use crate::jobs::event::JobEvent;
use crate::jobs::job::Job;

/// How long one demand stands; then it is made again.
const PATIENCE: Duration = Duration::from_secs(3600);
/// After looks that could not be asked for.
const PAUSE: Duration = Duration::from_secs(1);

/// Until it is told to stop. `ended` is told when the last lease was let go.
pub(super) async fn run(
    parts: Arc<Parts>,
    crew: Arc<Crew>,
    stop: Stop,
    tracker: TaskTracker,
    ended: watch::Sender<bool>,
) {
    let bell = &parts.ground.bell;
    bell.enlist(&crew.name, &crew.attend);
    let keeping = keeper::keep(&parts.settler, &crew);
    let working = async {
        let end = parts.ground.context.end().clone();
        tokio::select! {
            () = ask_for_ever(&parts, &crew, &stop, &tracker) => {}
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
    bell.dismiss(&crew.name);
    ended.send_replace(true);
}

async fn ask_for_ever(parts: &Arc<Parts>, crew: &Arc<Crew>, stop: &Stop, tracker: &TaskTracker) {
    let queues: Arc<[Queue]> = crew.queues.iter().map(|(queue, _)| Arc::clone(queue)).collect();
    let handle = parts.claimer.handle();
    loop {
        while crew.want() == 0 {
            crew.freed.notified().await;
        }
        let until = std::time::Instant::now() + PATIENCE;
        let ticket = match handle.ask(Arc::clone(&queues), Arc::clone(crew), Patience::Until(until)) {
            Ok(ticket) => ticket,
            Err(refused) => {
                warn!(%refused, worker = &*crew.name, retry_in = ?PAUSE, "could not ask for jobs");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        match ticket.await {
            Answer::Lease(jobs) => hand_out(parts, crew, stop, tracker, jobs),
            Answer::Nothing => {}
            Answer::Failed => tokio::time::sleep(PAUSE).await,
            Answer::Refused(refused) => {
                warn!(%refused, worker = &*crew.name, retry_in = ?PAUSE, "could not wait for jobs");
                tokio::time::sleep(PAUSE).await;
            }
            Answer::Closed => std::future::pending().await,
        }
    }
}

fn hand_out(parts: &Arc<Parts>, crew: &Arc<Crew>, stop: &Stop, tracker: &TaskTracker, mut jobs: Vec<Claimed>) {
    let now = Instant::now();
    crew.took(jobs.len());
    jobs.sort_by_key(|job| (job.priority, job.was_due()));
    for claimed in jobs {
        let event =
            JobEvent::Claimed { job: claimed.about.clone(), worker: Arc::clone(&crew.name), waited: claimed.waited };
        parts.ground.reporter.emit(&event);
        let (job, args) = Job::new(&parts.ground, claimed);
        crew.hold(&job.held, now);
        tracker.spawn(slot::attempt(Arc::clone(parts), Arc::clone(crew), stop.clone(), job, args));
    }
}
