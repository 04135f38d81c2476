//! `reveille jobs`: lists and shows jobs, and retries, cancels or redrives them; directly on the
//! database.
//!
//! Next: `view` prints them.

mod view;

use reveille::database::Database;
use reveille::jobs::{Cancelled, JobId, Jobs, JobsError, JobsOptions, Redrive};
use serde_json::json;

use crate::args::jobs::{ChosenJobs, ChosenQueue, DeadJobs, JobStep, Jobs as Typed, Quieted, Redriven};
use crate::config::Config;
use crate::exit::{Exit, Failure};
use crate::open_database::OpenDatabase;
use crate::output;

/// The output of a redrive that found nothing.
pub(super) const NOTHING: &str = "nothing was put back to work: there is none\n";

pub(crate) async fn run(typed: Typed, config: &Config) -> Result<Exit, Failure> {
    let options = config.jobs.clone();
    OpenDatabase::with_existing(config, async |database| on(database, typed, options).await).await
}

async fn on(database: &Database, typed: Typed, options: JobsOptions) -> Result<Exit, Failure> {
    // A database without our tables gets a clear sentence, not the error of the first statement.
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
            print_as(typed.json, || view::queues_json(&queues), || view::queues(&queues))
        }
        Some(JobStep::Show { id, json }) => {
            let job = jobs.explain(JobId(id)).await?.ok_or(JobsError::NoJob(JobId(id)))?;
            print_as(json, || view::job_json(&job), || view::job(&job))
        }
        Some(JobStep::Dead(which)) => dead(jobs, which).await,
        Some(JobStep::Retry(chosen)) => each(chosen, async |id| jobs.retry_now(id).await.map(|()| "runs now")).await,
        Some(JobStep::Cancel(chosen)) => each(chosen, async |id| jobs.cancel(id).await.map(cancelled)).await,
        Some(JobStep::Redrive(which)) => redrive(jobs, which).await,
        Some(JobStep::Pause(chosen)) => pause(jobs, &chosen).await,
        Some(JobStep::Quiet(Quieted { chosen, off })) => {
            jobs.quiet(&chosen.queue, !off).await?;
            let text = if off { "notifies again\n" } else { "quiet\n" };
            print_as(chosen.json, || json!({ "queue": chosen.queue, "quiet": !off }).to_string(), || text.to_owned())
        }
        Some(JobStep::Resume(chosen)) => {
            jobs.resume(&chosen.queue).await?;
            print_as(
                chosen.json,
                || json!({ "queue": chosen.queue, "paused": false }).to_string(),
                || "resumed\n".to_owned(),
            )
        }
    }
}

/// A queue needs no creation, so an unused name can be paused; the output says so, because the name
/// may be misspelt.
async fn pause(jobs: &Jobs, chosen: &ChosenQueue) -> Result<Exit, Failure> {
    let known = jobs.queues().await?.iter().any(|queue| queue.name == chosen.queue);
    jobs.pause(&chosen.queue).await?;
    let text = if known {
        "paused\n".to_owned()
    } else {
        format!("paused; {} holds no job yet: the first one will wait\n", chosen.queue)
    };
    print_as(chosen.json, || json!({ "queue": chosen.queue, "paused": true, "known": known }).to_string(), || text)
}

fn cancelled(how: Cancelled) -> &'static str {
    match how {
        Cancelled::Now => "cancelled",
        Cancelled::Requested => "asked to stop",
    }
}

async fn dead(jobs: &Jobs, which: DeadJobs) -> Result<Exit, Failure> {
    let found = jobs.dead(which.queue.as_deref(), which.after.map(JobId), which.limit).await?;
    print_as(which.json, || view::dead_json(&found), || view::dead(&found))
}

/// One by one; a job that cannot be changed does not stop the others. As JSON, each is a line.
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
        print_as(chosen.json, || json!({ "id": id, "done": done, "said": said }).to_string(), || text)?;
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
    let text = || {
        let missed = missed.iter().map(|id| format!("there is no dead job {id}\n"));
        let done = if ids.is_empty() { NOTHING.to_owned() } else { format!("put back to work: {}\n", ids.len()) };
        missed.chain([done]).collect()
    };
    print_as(which.json, || json!({ "redriven": ids, "missed": missed }).to_string(), text)?;
    Ok(if missed.is_empty() && !ids.is_empty() { Exit::Done } else { Exit::Refused })
}

fn print_as(json: bool, as_json: impl FnOnce() -> String, as_text: impl FnOnce() -> String) -> Result<Exit, Failure> {
    if json {
        output::line(&as_json())?;
    } else {
        output::print(&as_text())?;
    }
    Ok(Exit::Done)
}
