//! `reveille serve`: starts all parts, waits for a signal, and stops them in reverse order.

use std::time::Duration;

use reveille::messages::MessagesOptions;
use reveille_server::BoundServer;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::signals::Signals;
use super::systemd;
use super::wait_for_database::until_reachable;
use crate::config::{AtStart, Config, meaningless};
use crate::environment;
use crate::exit::{Exit, Failure};
use crate::open_database::OpenDatabase;
use crate::output;

pub(crate) async fn run(config: &Config) -> Result<Exit, Failure> {
    for (name, why) in meaningless(|name| environment::variable(name).is_some()) {
        warn!("{name} sets nothing here: {why}");
    }
    let mut signals = Signals::watch()?;
    // Before the database, which may take minutes to fetch: a port in use is noticed at once.
    let bound = config.server.clone().bind().await?;
    // A private server is started by this process: there is nobody else to wait for.
    let patience = if config.database.url.is_some() { config.database.wait } else { Duration::ZERO };
    let open_database = tokio::select! {
        prepared = until_reachable(patience, async || prepare(config).await) => prepared?,
        () = signals.next() => return Ok(Exit::Interrupted),
    };
    let (shutdown, mut serving) = start(bound, &open_database, config.messages.clone());
    tokio::select! {
        () = signals.next() => {}
        _ = serving.join_next() => {
            return Err(Failure::refused("the HTTP server ended by itself: this is a bug in Reveille, please report it"));
        }
    }
    info!("draining; a second signal ends at once");
    systemd::stopping();
    shutdown.cancel();
    tokio::select! {
        done = finish(serving, open_database) => done,
        () = signals.next() => Ok(Exit::Interrupted),
    }
}

/// A database with a schema that this program can work on.
async fn prepare(config: &Config) -> Result<OpenDatabase, Failure> {
    let open_database = OpenDatabase::open(config).await?;
    let fit = match config.database.at_start {
        AtStart::Migrate => open_database.database.migrate().await.map(drop),
        AtStart::Check => open_database.database.check_schema().await,
    };
    match fit {
        Ok(()) => Ok(open_database),
        Err(error) => {
            open_database.close().await?;
            Err(error.into())
        }
    }
}

fn start(
    bound: BoundServer,
    open_database: &OpenDatabase,
    messages: MessagesOptions,
) -> (CancellationToken, JoinSet<()>) {
    let (server, handle) = bound.serve(&open_database.database, messages);
    let shutdown = CancellationToken::new();
    let mut serving = JoinSet::new();
    serving.spawn(server.run(shutdown.clone()));
    // A closed standard output is no reason not to serve.
    let _ = output::line(&format!("listening on http://{}", handle.address()));
    systemd::ready();
    (shutdown, serving)
}

async fn finish(mut serving: JoinSet<()>, open_database: OpenDatabase) -> Result<Exit, Failure> {
    while serving.join_next().await.is_some() {}
    open_database.close().await?;
    Ok(Exit::Done)
}
