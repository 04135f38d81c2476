//! A worker that prints every job it does, for producers in any language: `tests/clients/outbox.py`
//! enqueues with an ordinary driver of Python, and this does the rest.
//!
//! ```text
//! cargo run -p reveille --example jobs_worker -- postgres://localhost/shop mail
//! psql shop -c "select reveille.enqueue('receipt', '{\"order\": 7}', queue => 'mail')"
//! ```
//!
//! It prints `waiting` when it receives hints, `did <id> <arguments>` for each job, and `polled`
//! when it claimed without having been woken. A third argument is the heartbeat in seconds. With
//! `REVEILLE_NOTIFY=off` it receives no hints and never prints `waiting`; it claims once in
//! `REVEILLE_FALLBACK_INTERVAL_S`. It ends with its standard input.

use std::error::Error;
use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use reveille::database::{Database, DatabaseOptions};
use reveille::jobs::{JobEvent, Jobs, JobsOptions, Worker};
use reveille_wake::Event;
use serde_json::Value;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut typed = std::env::args().skip(1);
    let url = typed.next().ok_or("say where PostgreSQL is: postgres://…")?;
    let queue = typed.next().unwrap_or_else(|| "default".to_owned());
    let mut options = DatabaseOptions::new(url);
    if let Some(seconds) = typed.next() {
        options = options.heartbeat(Duration::from_secs(seconds.parse()?));
    }
    let database = Database::connect(options).await?;
    let switches = JobsOptions::from_environment(variable)?;
    let jobs = Jobs::open(&database, switches.observer(Arc::new(print_polled)).wake_observer(Arc::new(print_waiting)));
    let worker = Worker::builder(&jobs)
        .queue(queue, 1)
        .handler::<Value, _>("receipt", |args, job| async move { println!("did {} {args}", job.id()) })
        .start()
        .await?;

    tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await??;

    worker.drain(Duration::from_secs(5)).await;
    jobs.close().await;
    database.close().await;
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "the library reads no environment; this is a program")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn print_polled(event: &JobEvent) {
    if *event == JobEvent::Polled {
        println!("polled");
    }
}

fn print_waiting(event: &Event) {
    if matches!(event, Event::Link(link) if link.is_proven()) {
        println!("waiting");
    }
}
