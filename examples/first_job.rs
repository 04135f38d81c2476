//! The first program of docs/jobs.md, which shows it word by word: enqueue one job, and run it.
//!
//! ```text
//! cargo run -p reveille --example first_job -- postgres://localhost/shop
//! ```

use std::error::Error;
use std::time::Duration;

use reveille::database::{Database, DatabaseOptions};
use reveille::jobs::{Jobs, JobsOptions, NewJob, Worker};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

#[derive(Serialize, Deserialize)]
struct Receipt {
    order: u32,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).ok_or("say where PostgreSQL is: postgres://…")?;
    let database = Database::connect(DatabaseOptions::new(url)).await?;
    database.migrate().await?;
    let jobs = Jobs::open(&database, JobsOptions::default());
    let (done, mut sent) = mpsc::channel(1);
    let worker = Worker::builder(&jobs)
        .queue("mail", 3) // three slots of four go to mail while both have work
        .queue("default", 1)
        .slots(64)
        .handler::<Receipt, _>("receipt", move |receipt, job| {
            let done = done.clone();
            async move {
                println!("the receipt for order {} is sent, by job {}", receipt.order, job.id());
                let _ = done.send(receipt.order).await;
            }
        })
        .start()
        .await?;

    jobs.enqueue(NewJob::new("receipt", &Receipt { order: 7 })?.queue("mail")).await?;

    sent.recv().await; // a service waits for its signal to stop instead
    worker.drain(Duration::from_secs(20)).await;
    Ok(())
}
