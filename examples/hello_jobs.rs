//! Hello, job: enqueue one, run it.
//!
//! ```text
//! cargo run -p reveille --example hello_jobs -- postgres://localhost/shop
//! ```

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use reveille::database::{Database, DatabaseOptions};
use reveille::jobs::{Jobs, JobsOptions, NewJob, Worker};
use tokio::sync::Notify;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).ok_or("say where PostgreSQL is: postgres://…")?;
    let database = Database::connect(DatabaseOptions::new(url)).await?;
    database.migrate().await?;
    let jobs = Jobs::open(&database, JobsOptions::default());
    let greeted = Arc::new(Notify::new());
    let greeting = Arc::clone(&greeted);
    let worker = Worker::builder(&jobs)
        .handler::<String, _>("greet", move |name, job| {
            let greeted = Arc::clone(&greeting);
            async move {
                println!("hello, {name}, from job {}", job.id());
                greeted.notify_one();
            }
        })
        .start()
        .await?;

    jobs.enqueue(NewJob::new("greet", &"world")?).await?;

    greeted.notified().await;
    worker.drain(Duration::from_secs(5)).await;
    jobs.close().await;
    database.close().await;
    Ok(())
}
