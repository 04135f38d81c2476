//! `reveille serve`: everything up, until a signal; then everything down, in reverse order.

use reveille::messages::MessagesOptions;
use reveille_server::Door;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::signals::Signals;
use crate::config::{AtStart, Config, meaningless};
use crate::environment;
use crate::exit::{Exit, Failure};
use crate::opened::OpenDatabase;
use crate::output;

pub(crate) async fn run(config: &Config) -> Result<Exit, Failure> {
    for (name, why) in meaningless(|name| environment::variable(name).is_some()) {
        warn!("{name} sets nothing here: {why}");
    }
    let mut signals = Signals::watch()?;
    // Before the database, which may take minutes to fetch: a port that is in use is found at once.
    let door = config.server.clone().bind().await?;
    let opened = tokio::select! {
        opened = prepare(config) => opened?,
        () = signals.next() => return Ok(Exit::Interrupted),
    };
    let (shutdown, mut serving) = start(door, &opened, config.messages.clone());
    tokio::select! {
        () = signals.next() => {}
        _ = serving.join_next() => return Err(Failure::refused("the HTTP server ended by itself: this is a defect")),
    }
    info!("draining; a second signal ends at once");
    shutdown.cancel();
    tokio::select! {
        done = finish(serving, opened) => done,
        () = signals.next() => Ok(Exit::Interrupted),
    }
}

/// A database with a schema that this program can work on.
async fn prepare(config: &Config) -> Result<OpenDatabase, Failure> {
    let opened = OpenDatabase::open(config).await?;
    let fit = match config.database.at_start {
        AtStart::Migrate => opened.database.migrate().await.map(drop),
        AtStart::Check => opened.database.check_schema().await,
    };
    match fit {
        Ok(()) => Ok(opened),
        Err(error) => {
            opened.close().await?;
            Err(error.into())
        }
    }
}

fn start(door: Door, opened: &OpenDatabase, messages: MessagesOptions) -> (CancellationToken, JoinSet<()>) {
    let (server, handle) = door.serve(&opened.database, messages);
    let shutdown = CancellationToken::new();
    let mut serving = JoinSet::new();
    serving.spawn(server.run(shutdown.clone()));
    // Whoever cannot be told where we listen may know it already.
    let _ = output::line(&format!("listening on http://{}", handle.address()));
    (shutdown, serving)
}

async fn finish(mut serving: JoinSet<()>, opened: OpenDatabase) -> Result<Exit, Failure> {
    while serving.join_next().await.is_some() {}
    opened.close().await?;
    Ok(Exit::Done)
}
