//! A worker on a table of your own: it waits, a commit wakes it, it takes rows until nothing is
//! left.
//!
//! ```sh
//! cargo run -p own-table -- postgres://localhost/shop
//! ```

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use own_table::{SOURCE, SURVEY, Todo};
use reveille::database::{Database, DatabaseOptions};
use reveille::service::HubSource;
use reveille_wake::{Answer, Dispatcher, DispatcherOptions, Hub, HubOptions, Patience};
use tokio_postgres::NoTls;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let url = std::env::args().nth(1).context("usage: own-table <connection string>")?;
    let (tasks, end) = (TaskTracker::new(), CancellationToken::new());
    let (client, connection) = tokio_postgres::connect(&url, NoTls).await?;
    tasks.spawn(connection);
    own_table::create(&client).await?;
    drop(client);
    let database = Database::connect(DatabaseOptions::new(url)).await?;
    database.migrate().await?;

    // What a process has once: a hub, its source of hints, and the dispatcher that claims for all
    // demands.
    let (hub, runner) = Hub::new(HubOptions::default());
    let registration = database.register(Arc::new(HubSource::new(SOURCE, SURVEY, hub.clone())));
    let source = Todo::new(database.clone(), Duration::from_secs(30));
    let (dispatcher, handle) = Dispatcher::new(&hub, source, DispatcherOptions::default());
    tasks.spawn(runner.run(end.clone().cancelled_owned()));
    tasks.spawn(dispatcher.run(end.clone().cancelled_owned()));

    let wait = |time| handle.request(["mail".to_owned()], (), Patience::Until(Instant::now() + time));
    let mut waiting = wait(Duration::from_secs(30))?;
    own_table::push(&database, "mail", 3).await?;
    while let Answer::Lease(taken) = waiting.await {
        let finished = own_table::finish(&database, &taken).await?;
        println!("row {} of {}: {}", taken.id, taken.queue, if finished { "done" } else { "somebody else has it" });
        waiting = wait(Duration::from_millis(100))?;
    }

    end.cancel();
    tasks.close();
    tasks.wait().await;
    drop(registration);
    database.close().await;
    Ok(())
}
