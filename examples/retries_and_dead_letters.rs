//! A job that fails, is tried again, ends with the dead letters, is explained, and is brought back
//! once the cause is cured.
//!
//! ```text
//! cargo run -p reveille --example retries_and_dead_letters -- postgres://localhost/shop
//! ```

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use reveille::database::{Database, DatabaseOptions};
use reveille::jobs::{Backoff, JobId, Jobs, JobsOptions, NewJob, Outcome, Redrive, State, Worker};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).ok_or("say where PostgreSQL is: postgres://…")?;
    let database = Database::connect(DatabaseOptions::new(url)).await?;
    database.migrate().await?;
    let jobs = Jobs::open(&database, JobsOptions::default());
    let mail_server_is_up = Arc::new(AtomicBool::new(false));
    let up = Arc::clone(&mail_server_is_up);
    let worker = Worker::builder(&jobs)
        .queue("mail", 1)
        .handler::<String, _>("send", move |to, job| {
            let up = up.load(Ordering::Relaxed);
            async move {
                println!("attempt {} of {} to write to {to}", job.attempt(), job.max_attempts());
                if up { Outcome::Done } else { Outcome::retry("unreachable", "the mail server does not answer") }
            }
        })
        .start()
        .await?;

    let pauses = Backoff::list([Duration::ZERO, Duration::from_millis(200)])?;
    let letter = NewJob::new("send", &"ada@example.org")?.queue("mail").max_attempts(3).backoff(pauses);
    let id = jobs.enqueue(letter).await?.id;
    until(&jobs, id, State::Dead).await?;
    for failure in jobs.explain(id).await?.ok_or("it is kept")?.errors {
        println!("  attempt {}: {}: {}", failure.attempt, failure.code, failure.message);
    }

    mail_server_is_up.store(true, Ordering::Relaxed);
    let back = jobs.redrive(Redrive::all().queue("mail").code("unreachable")).await?;
    println!("brought back: {back:?}");
    until(&jobs, id, State::Done).await?;

    worker.drain(Duration::from_secs(5)).await;
    jobs.close().await;
    database.close().await;
    Ok(())
}

async fn until(jobs: &Jobs, id: JobId, wanted: State) -> Result<(), Box<dyn Error>> {
    loop {
        let job = jobs.explain(id).await?.ok_or("it is kept")?;
        if job.state == wanted {
            println!("job {id} is {}: {}", job.state, job.because);
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
