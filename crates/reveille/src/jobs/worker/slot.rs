//! One attempt, from a free slot to the record of its end.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use tracing::{Instrument, error, info_span, warn};

use super::Stop;
use super::crew::Crew;
use crate::jobs::Parts;
use crate::jobs::event::JobEvent;
use crate::jobs::handler::{Hook, Working};
use crate::jobs::job::Job;
use crate::jobs::outcome::Outcome;
use crate::jobs::settle::{Ending, Settlement};

/// Make one attempt and record it.
pub(super) async fn attempt(parts: Arc<Parts>, crew: Arc<Crew>, stop: Stop, job: Job, args: Vec<u8>) {
    let (ending, took) = run(&parts, &crew, &stop, &job, args).await;
    crew.free();
    if let Some(ending) = ending {
        if ending == Ending::Release {
            crew.count_released();
        }
        let settlement = settlement(&job, ending, took);
        parts.settler.settle_one(settlement).await;
    } else if job.held.lost.is_cancelled() {
        parts.ground.reporter.emit(&JobEvent::LeaseLost { job: job.held.about.clone() });
    }
    crew.let_go(&job.held);
}

/// `None` when the job is nobody's concern here any more.
async fn run(parts: &Parts, crew: &Crew, stop: &Stop, job: &Job, args: Vec<u8>) -> (Option<Ending>, Duration) {
    let held = &job.held;
    // Those claimed ahead wait here for a slot.
    let _slot = tokio::select! {
        biased;
        () = held.lost.cancelled() => return (None, Duration::ZERO),
        () = stop.claims.cancelled() => {
            return ((!crew.is_abandoned()).then_some(Ending::Release), Duration::ZERO);
        }
        slot = crew.slots.acquire() => slot,
    };
    if job.is_cancelled() {
        return (Some(Ending::By(Outcome::Cancel("it was cancelled before it began".to_owned()))), Duration::ZERO);
    }
    let Some(handler) = crew.handlers.get(job.kind()) else {
        let note = format!("no handler for the kind \"{}\" in {}", job.kind(), crew.name);
        warn!(job_id = job.id().0, kind = job.kind(), retry_in = ?crew.unknown_kind_delay, "no handler for this kind of job");
        return (Some(Ending::Park(note, crew.unknown_kind_delay)), Duration::ZERO);
    };
    let working = match handler(&args, job.clone()) {
        Ok(working) => working,
        Err(outcome) => return (Some(Ending::By(outcome)), Duration::ZERO),
    };
    drop(args);
    crew.begin();
    parts.ground.reporter.emit(&JobEvent::Started { job: held.about.clone() });
    watched(crew, |hook| hook.before(job));
    let began = Instant::now();
    let ending = watch_over(crew, stop, job, working).await;
    let took = began.elapsed();
    crew.end();
    let ending = ending.map(|ending| recordable(revised(job, ending), parts.ground.options.args_bytes_max));
    if let Some(Ending::By(outcome)) = &ending {
        watched(crew, |hook| hook.after(job, outcome, took));
    }
    (ending, took)
}

/// Until it ends, or may not go on: whatever comes first.
async fn watch_over(crew: &Crew, stop: &Stop, job: &Job, working: Working) -> Option<Ending> {
    let held = &job.held;
    let span = info_span!(
        "job",
        job_id = job.id().0,
        kind = job.kind(),
        queue = job.queue(),
        attempt = job.attempt(),
        worker_id = &*crew.name
    );
    let working = AssertUnwindSafe(working).catch_unwind().instrument(span);
    let patience = async {
        match held.timeout {
            Some(timeout) => tokio::time::sleep(timeout).await,
            None => std::future::pending().await,
        }
    };
    // Told to stop, a handler may take a moment; then it is dropped.
    let out_of_grace = async {
        held.cancel.cancelled().await;
        tokio::time::sleep(crew.cancel_grace).await;
    };
    let told = async {
        stop.handlers.cancelled().await;
        held.cancel.cancel();
        std::future::pending::<()>().await;
    };
    tokio::select! {
        biased;
        ended = working => Some(Ending::By(match ended {
            Ok(outcome) => outcome,
            Err(panic) => Outcome::retry("panic", words(&*panic)),
        })),
        () = held.lost.cancelled() => None,
        () = stop.now.cancelled() => {
            crew.count_dropped();
            (!crew.is_abandoned()).then_some(Ending::Release)
        }
        () = patience => Some(Ending::By(Outcome::retry("timeout", "it took longer than it may"))),
        () = out_of_grace => Some(if held.cancel_requested.load(Ordering::Relaxed) {
            Ending::By(Outcome::Cancel("it was cancelled, and did not stop by itself".to_owned()))
        } else {
            crew.count_dropped();
            Ending::Release
        }),
        () = told => None,
    }
}

/// What the handler says, in the light of what happened to its job.
fn revised(job: &Job, ending: Ending) -> Ending {
    let held = &job.held;
    if held.settled.load(Ordering::Relaxed) {
        // Its own transaction settled it. If that committed, this finds nothing to settle.
        return match ending {
            Ending::By(Outcome::Done | Outcome::DoneWith(_)) => Ending::By(Outcome::retry(
                "not_committed",
                "the handler settled the job in a transaction that was not committed",
            )),
            other => other,
        };
    }
    // A handler that stops because it was asked to may call that a failure; it is what was wanted.
    match ending {
        Ending::By(Outcome::Retry(failure) | Outcome::RetryIn(failure, _))
            if held.cancel_requested.load(Ordering::Relaxed) =>
        {
            Ending::By(Outcome::Cancel(failure.message))
        }
        Ending::By(Outcome::Retry(_) | Outcome::RetryIn(..)) if held.lost.is_cancelled() => Ending::Release,
        other => other,
    }
}

/// In words and sizes that the books take.
fn recordable(ending: Ending, result_bytes_max: usize) -> Ending {
    let Ending::By(outcome) = ending else { return ending };
    Ending::By(match outcome.check(result_bytes_max) {
        Ok(()) => outcome.fitted(),
        // The work is done, and done again it would come to as much.
        Err(error) => Outcome::dead("result_too_large", error.to_string()),
    })
}

fn settlement(job: &Job, ending: Ending, took: Duration) -> Settlement {
    let held = &job.held;
    Settlement {
        token: held.token,
        about: held.about.clone(),
        queue: Arc::clone(&held.queue),
        ending,
        took,
        or_lost: held.settled.load(Ordering::Relaxed),
        interrupted: false,
    }
}

fn watched(crew: &Crew, tell: impl Fn(&dyn Hook)) {
    for hook in &crew.hooks {
        if let Err(panic) = std::panic::catch_unwind(AssertUnwindSafe(|| tell(&**hook))) {
            error!(message = words(&*panic), "a hook panicked");
        }
    }
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "it panicked".to_owned())
}
