//! Hello, job: enqueue one, run it.
//!
//! ```text
//! cargo run -p reveille --example hello_jobs -- postgres://localhost/shop
//! ```

use std::error::Error;
use std::time::Duration;

use reveille::database::{Database, DatabaseOptions};
use reveille::jobs::{Jobs, JobsOptions, NewJob, Worker};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).ok_or("say where PostgreSQL is: postgres://…")?;
    let database = Database::connect(DatabaseOptions::new(url)).await?;
    database.migrate().await?;
    let jobs = Jobs::open(&database, JobsOptions::default());
    let worker = Worker::builder(&jobs)
        .handler::<String, _>("greet", |name, job| async move { println!("hello, {name}, from job {}", job.id()) })
        .start()
        .await?;

    jobs.enqueue(NewJob::new("greet", &"world")?).await?;

    while jobs.figures().kinds.values().map(|kind| kind.success).sum::<u64>() == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    worker.drain(Duration::from_secs(5)).await;
    jobs.close().await;
    database.close().await;
    Ok(())
}
