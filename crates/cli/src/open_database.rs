//! The database of a command: the configured one, or a private server that is started for it.
//!
//! Promises that [`OpenDatabase::close`] leaves nothing running that this command started. If a
//! command dies without it, the supervisor stops the private server.

use std::time::Duration;

use reveille::database::{Database, DatabaseError, DatabaseOptions, Purpose, Statement};
use reveille_embedded::{Closed, Embedded, EmbeddedError, Presence, Progress};
use tracing::{error, info};

use crate::commands::postgres;
use crate::config::Config;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::remote::{Remote, RemoteError};

/// The database we create in a private server, so that the database `postgres` stays empty.
const OURS: &str = "reveille";
/// Creates `OURS`. Not one of the library's SQL files: only a private server needs it, and a name
/// cannot be a parameter.
const CREATE: Statement =
    Statement { name: "the creation of our database", sql: "create database reveille", types: &[] };

/// A shutdown writes memory to disk, which takes time on a slow disk.
const CLOSING: Duration = Duration::from_secs(30);

/// A connected database, and its server if this command uses the private one.
#[derive(Debug)]
pub(crate) struct OpenDatabase {
    pub(crate) database: Database,
    embedded: Option<Embedded>,
}

impl OpenDatabase {
    /// Connects; without a URL, starts the private server first and prints a note. Does not check
    /// the schema: some commands remove a schema that does not fit.
    pub(crate) async fn open(config: &Config) -> Result<Self, Failure> {
        match &config.database.url {
            Some(url) => {
                let database = Database::connect_to_any_schema(config.database.options(url)).await?;
                Ok(Self { database, embedded: None })
            }
            None => Self::open_private(config).await,
        }
    }

    async fn open_private(config: &Config) -> Result<Self, Failure> {
        let options = config.private.options(&postgres::program()?)?;
        let options = options.on_progress(|progress| match progress {
            Progress::Down { .. } => error!("{progress}"),
            progress => output::note(&progress.to_string()),
        });
        let embedded = blocking(move || Embedded::start(&options)).await??;
        let database = match connect_or_create(config, &embedded).await {
            Ok(database) => database,
            Err(error) => {
                close(embedded).await?;
                return Err(error.into());
            }
        };
        output::note(&format!(
            "no DATABASE_URL: private PostgreSQL {} in {}; psql -h {} -U postgres {OURS}",
            database.server_version(),
            embedded.data_dir().display(),
            output::pasteable(&embedded.socket_dir()),
        ));
        Ok(Self { database, embedded: Some(embedded) })
    }

    /// Closes the connections, and the private server unless other processes use it too.
    pub(crate) async fn close(self) -> Result<(), Failure> {
        self.database.close().await;
        match self.embedded {
            Some(embedded) => close(embedded).await,
            None => Ok(()),
        }
    }

    /// As [`with`](Self::with), for commands that list or change existing data: creates no
    /// database, and starts none beside that of a running server, whose jobs it would not see.
    pub(crate) async fn with_existing<T, E: Into<Failure>>(
        config: &Config,
        work: impl AsyncFnOnce(&Database) -> Result<T, E>,
    ) -> Result<T, Failure> {
        if config.database.url.is_none() {
            refuse_to_start_another(config).await?;
        }
        Self::with(config, work).await
    }

    /// Does something with the database, and closes it whatever the result.
    pub(crate) async fn with<T, E: Into<Failure>>(
        config: &Config,
        work: impl AsyncFnOnce(&Database) -> Result<T, E>,
    ) -> Result<T, Failure> {
        let open_database = Self::open(config).await?;
        let done = work(&open_database.database).await;
        open_database.close().await?;
        done.map_err(Into::into)
    }
}

async fn refuse_to_start_another(config: &Config) -> Result<(), Failure> {
    let options = config.private.options(&postgres::program()?)?;
    let presence = Embedded::presence(&options);
    if presence == Presence::Running {
        return Ok(());
    }
    let dir = options.chosen_data_dir().display();
    // A server that answers uses another database than one that is stopped.
    let served = !matches!(Remote::new(&config.remote).get("/livez").await, Err(RemoteError::Away(_)));
    let found = if presence == Presence::Absent { "holds no database" } else { "holds one that is stopped" };
    match (served, presence) {
        (true, _) => Err(Failure::refused(format!(
            "no DATABASE_URL, and {dir} {found}: the server at {} uses another; pass its --data-dir or --database-url",
            config.remote
        ))),
        (false, Presence::Absent) => Err(Failure::refused(format!(
            "no DATABASE_URL, and {dir} {found}: name one by --database-url or --data-dir; `reveille serve` creates one"
        ))),
        (false, Presence::Stopped | Presence::Running) => Ok(()),
    }
}

async fn connect_or_create(config: &Config, embedded: &Embedded) -> Result<Database, DatabaseError> {
    let options = config.database.options(&embedded.connection_string(OURS));
    match Database::connect_to_any_schema(options.clone()).await {
        Err(DatabaseError::MissingDatabase { .. }) => {}
        connected => return connected,
    }
    // With the library's default options: `create database` works neither in the transactions of
    // the mode `pooled` nor under a short statement timeout.
    let server = Database::connect(DatabaseOptions::new(embedded.connection_string("postgres"))).await?;
    let created = create(&server).await;
    server.close().await;
    created?;
    Database::connect_to_any_schema(options).await
}

async fn create(server: &Database) -> Result<(), DatabaseError> {
    let connection = server.connection(Purpose::Migrate).await?;
    match connection.execute(&CREATE, &[]).await {
        // Another program that started on the new directory at the same time was first.
        Err(error) if matches!(error.sqlstate(), Some("42P04" | "23505")) => Ok(()),
        done => done.map(drop),
    }
}

async fn close(embedded: Embedded) -> Result<(), Failure> {
    let dir = embedded.data_dir().display().to_string();
    let closed = blocking(move || embedded.close(CLOSING)).await??;
    if closed == Closed::StillUp {
        info!(data_dir = dir, "the private PostgreSQL stays up: others use it, or it is still stopping");
    }
    Ok(())
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, EmbeddedError> + Send + 'static,
) -> Result<Result<T, EmbeddedError>, Failure> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| {
        Failure::new(
            Exit::Refused,
            vec![format!("the program panicked: this is a bug in Reveille, please report it: {error}")],
        )
    })
}
