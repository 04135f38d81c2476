//! One attempt, from a free slot to the record of its end.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use tracing::{Instrument, error, info_span, warn};

use super::Stop;
use super::state::WorkerState;
use crate::jobs::Parts;
use crate::jobs::event::JobEvent;
use crate::jobs::handler::{Hook, Working};
use crate::jobs::job::Job;
use crate::jobs::outcome::Outcome;
use crate::jobs::settle::{Ending, Settlement};

/// Make one attempt and record it.
pub(super) async fn attempt(parts: Arc<Parts>, worker: Arc<WorkerState>, stop: Stop, job: Job, args: Vec<u8>) {
    let (ending, took) = run(&parts, &worker, &stop, &job, args).await;
    worker.free_slot();
    if let Some(ending) = ending {
        if ending == Ending::Release {
            worker.counts.released.add(1);
        }
        let settlement = settlement(&job, ending, took);
        parts.settler.settle_one(settlement).await;
    } else if job.held.lost.is_cancelled() {
        parts.context.reporter.emit(&JobEvent::LeaseLost { job: job.held.about.clone() });
    }
    worker.let_go(&job.held);
}

/// `None` when this worker has nothing to record: the lease is lost, or the worker was abandoned.
async fn run(parts: &Parts, worker: &WorkerState, stop: &Stop, job: &Job, args: Vec<u8>) -> (Option<Ending>, Duration) {
    let held = &job.held;
    // Jobs that were claimed ahead wait here for a slot.
    let _slot = tokio::select! {
        biased;
        () = held.lost.cancelled() => return (None, Duration::ZERO),
        () = stop.claims.cancelled() => {
            return ((!worker.is_abandoned()).then_some(Ending::Release), Duration::ZERO);
        }
        slot = worker.slots.acquire() => slot,
    };
    if job.is_cancelled() {
        return (Some(Ending::By(Outcome::Cancel("it was cancelled before it began".to_owned()))), Duration::ZERO);
    }
    let Some(handler) = worker.handlers.get(job.kind()) else {
        let note = format!("no handler for the kind \"{}\" in {}", job.kind(), worker.name);
        warn!(job_id = job.id().0, kind = job.kind(), retry_in = ?worker.unknown_kind_delay, "no handler for this kind of job");
        return (Some(Ending::Park(note, worker.unknown_kind_delay)), Duration::ZERO);
    };
    let working = match handler(&args, job.clone()) {
        Ok(working) => working,
        Err(outcome) => return (Some(Ending::By(outcome)), Duration::ZERO),
    };
    drop(args);
    worker.counts.begins();
    parts.context.reporter.emit(&JobEvent::Started { job: held.about.clone() });
    call_hooks(worker, |hook| hook.before(job));
    let began = Instant::now();
    let ending = watch_over(worker, stop, job, working).await;
    let took = began.elapsed();
    worker.counts.ends();
    let ending = ending.map(|ending| recordable(revised(job, ending), parts.context.options.args_bytes_max));
    if let Some(Ending::By(outcome)) = &ending {
        call_hooks(worker, |hook| hook.after(job, outcome, took));
    }
    (ending, took)
}

/// Waits until the handler ends or may not go on.
async fn watch_over(worker: &WorkerState, stop: &Stop, job: &Job, working: Working) -> Option<Ending> {
    let held = &job.held;
    let span = info_span!(
        "job",
        job_id = job.id().0,
        kind = job.kind(),
        queue = job.queue(),
        attempt = job.attempt(),
        worker_id = &*worker.name
    );
    let working = AssertUnwindSafe(working).catch_unwind().instrument(span);
    let patience = async {
        match held.timeout {
            Some(timeout) => tokio::time::sleep(timeout).await,
            None => std::future::pending().await,
        }
    };
    // A handler that was asked to stop may take a moment; then it is dropped.
    let out_of_grace = async {
        held.cancel.cancelled().await;
        tokio::time::sleep(worker.cancel_grace).await;
    };
    let asked_to_stop = async {
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
            worker.counts.dropped.add(1);
            (!worker.is_abandoned()).then_some(Ending::Release)
        }
        () = patience => Some(Ending::By(Outcome::retry("timeout", "it took longer than it may"))),
        () = out_of_grace => Some(if held.cancel_requested.load(Ordering::Relaxed) {
            Ending::By(Outcome::Cancel("it was cancelled, and did not stop by itself".to_owned()))
        } else {
            worker.counts.dropped.add(1);
            Ending::Release
        }),
        () = asked_to_stop => None,
    }
}

/// The handler's outcome, revised by what happened to its job.
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
    // A handler that stops because it was asked to may call that a failure, but it is not one.
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

/// An ending that the tables accept: texts are cut, and a result that is too large is a failure.
fn recordable(ending: Ending, result_bytes_max: usize) -> Ending {
    let Ending::By(outcome) = ending else { return ending };
    Ending::By(match outcome.check(result_bytes_max) {
        Ok(()) => outcome.fitted(),
        // The work is done, and another attempt would have as large a result.
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

fn call_hooks(worker: &WorkerState, call: impl Fn(&dyn Hook)) {
    for hook in &worker.hooks {
        if let Err(panic) = std::panic::catch_unwind(AssertUnwindSafe(|| call(&**hook))) {
            error!(message = words(&*panic), "a hook panicked");
        }
    }
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "it panicked".to_owned())
}
