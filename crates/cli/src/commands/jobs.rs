//! `reveille jobs`: what waits, what was given up, and what people do about it; straight on the
//! database.
//!
//! Next: `view`, how it is printed.

mod view;

use reveille::database::Database;
use reveille::jobs::{Cancelled, JobId, Jobs, JobsError, JobsOptions, Redrive};
use serde_json::json;

use crate::args::jobs::{ChosenJobs, ChosenQueue, DeadJobs, JobStep, Jobs as Typed, Quieted, Redriven};
use crate::config::Config;
use crate::exit::{Exit, Failure};
use crate::opened::OpenDatabase;
use crate::output;

/// What a redrive says that found nobody.
pub(super) const NOTHING: &str = "nothing was put back to work: there is none\n";

pub(crate) async fn run(typed: Typed, config: &Config) -> Result<Exit, Failure> {
    let options = config.jobs.clone();
    OpenDatabase::with_existing(config, async |database| on(database, typed, options).await).await
}

async fn on(database: &Database, typed: Typed, options: JobsOptions) -> Result<Exit, Failure> {
    // A database without our tables is told in words, and not by the first statement that misses
    // one.
    database.check_schema().await?;
    let jobs = Jobs::open(database, options);
    let done = step(&jobs, typed).await;
    jobs.close().await;
    done
}

async fn step(jobs: &Jobs, typed: Typed) -> Result<Exit, Failure> {
    match typed.step {
        None => {
            let queues = jobs.queues().await?;
            told(typed.json, || view::queues_json(&queues), || view::queues(&queues))
        }
        Some(JobStep::Show { id, json }) => {
            let job = jobs.explain(JobId(id)).await?.ok_or(JobsError::NoJob(JobId(id)))?;
            told(json, || view::job_json(&job), || view::job(&job))
        }
        Some(JobStep::Dead(which)) => dead(jobs, which).await,
        Some(JobStep::Retry(chosen)) => each(chosen, async |id| jobs.retry_now(id).await.map(|()| "runs now")).await,
        Some(JobStep::Cancel(chosen)) => each(chosen, async |id| jobs.cancel(id).await.map(cancelled)).await,
        Some(JobStep::Redrive(which)) => redrive(jobs, which).await,
        Some(JobStep::Pause(chosen)) => pause(jobs, &chosen).await,
        Some(JobStep::Quiet(Quieted { chosen, off })) => {
            jobs.quiet(&chosen.queue, !off).await?;
            let said = if off { "notifies again\n" } else { "quiet\n" };
            told(chosen.json, || json!({ "queue": chosen.queue, "quiet": !off }).to_string(), || said.to_owned())
        }
        Some(JobStep::Resume(chosen)) => {
            jobs.resume(&chosen.queue).await?;
            told(
                chosen.json,
                || json!({ "queue": chosen.queue, "paused": false }).to_string(),
                || "resumed\n".to_owned(),
            )
        }
    }
}

/// Any name is a queue, from its first job on: one that nobody has used yet can be paused, and is
/// told, for it may be a slip.
async fn pause(jobs: &Jobs, chosen: &ChosenQueue) -> Result<Exit, Failure> {
    let known = jobs.queues().await?.iter().any(|queue| queue.name == chosen.queue);
    jobs.pause(&chosen.queue).await?;
    let said = if known {
        "paused\n".to_owned()
    } else {
        format!("paused; {} holds no job yet: the first one will wait\n", chosen.queue)
    };
    told(chosen.json, || json!({ "queue": chosen.queue, "paused": true, "known": known }).to_string(), || said)
}

fn cancelled(how: Cancelled) -> &'static str {
    match how {
        Cancelled::Now => "cancelled",
        Cancelled::Requested => "told to stop",
    }
}

async fn dead(jobs: &Jobs, which: DeadJobs) -> Result<Exit, Failure> {
    let found = jobs.dead(which.queue.as_deref(), which.after.map(JobId), which.limit).await?;
    told(which.json, || view::dead_json(&found), || view::dead(&found))
}

/// One by one; what cannot be done to one does not keep the others from it. As JSON, each is a
/// line.
async fn each(
    chosen: ChosenJobs,
    act: impl AsyncFn(JobId) -> Result<&'static str, JobsError>,
) -> Result<Exit, Failure> {
    let mut all = Exit::Done;
    for id in chosen.ids {
        let (done, said) = match act(JobId(id)).await {
            Ok(said) => (true, said.to_owned()),
            Err(refused @ (JobsError::NoJob(_) | JobsError::WrongState { .. })) => (false, refused.to_string()),
            Err(error) => return Err(error.into()),
        };
        if !done {
            all = Exit::Refused;
        }
        let text = if done { format!("job {id}: {said}\n") } else { format!("{said}\n") };
        told(chosen.json, || json!({ "id": id, "done": done, "said": said }).to_string(), || text)?;
    }
    Ok(all)
}

async fn redrive(jobs: &Jobs, which: Redriven) -> Result<Exit, Failure> {
    let mut redriven = Vec::new();
    if which.ids.is_empty() {
        let mut wanted = Redrive::all();
        wanted = which.queue.into_iter().fold(wanted, Redrive::queue);
        wanted = which.kind.into_iter().fold(wanted, Redrive::kind);
        wanted = which.code.into_iter().fold(wanted, Redrive::code);
        redriven = jobs.redrive(wanted).await?;
    }
    for id in &which.ids {
        redriven.extend(jobs.redrive(Redrive::one(JobId(*id))).await?);
    }
    let ids: Vec<i64> = redriven.iter().map(|id| id.0).collect();
    let missed: Vec<i64> = which.ids.into_iter().filter(|id| !ids.contains(id)).collect();
    let said = || {
        let missed = missed.iter().map(|id| format!("there is no dead job {id}\n"));
        let done = if ids.is_empty() { NOTHING.to_owned() } else { format!("put back to work: {}\n", ids.len()) };
        missed.chain([done]).collect()
    };
    told(which.json, || json!({ "redriven": ids, "missed": missed }).to_string(), said)?;
    Ok(if missed.is_empty() && !ids.is_empty() { Exit::Done } else { Exit::Refused })
}

fn told(json: bool, as_json: impl FnOnce() -> String, as_text: impl FnOnce() -> String) -> Result<Exit, Failure> {
    if json {
        output::line(&as_json())?;
    } else {
        output::print(&as_text())?;
    }
    Ok(Exit::Done)
}
