//! The database a command stands on: the one that was named, or a private one that is started for
//! it.
//!
//! Promises that [`OpenDatabase::close`] leaves nothing running that this command started, and that a
//! command that dies without it leaves nothing either: the private server's supervisor sees to
//! that.

use std::time::Duration;

use reveille::database::{Database, DatabaseError, DatabaseOptions, Purpose, Statement};
use reveille_embedded::{Closed, Embedded, EmbeddedError, Presence, Progress};
use tracing::{error, info};

use crate::commands::postgres;
use crate::config::Config;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::remote::{Remote, RemoteError};

/// The database we make in a private server, so that `postgres` stays what everyone expects it to
/// be.
const OURS: &str = "reveille";
/// `OURS` is the only name that ever stands here. Not one of the library's files: only a private
/// server needs it, and a name cannot be a parameter.
const CREATE: Statement =
    Statement { name: "the creation of our database", sql: "create database reveille", types: &[] };

/// A shutdown writes what is in memory; a slow disk may take its time.
const CLOSING: Duration = Duration::from_secs(30);

/// A database, and the server if it is ours.
#[derive(Debug)]
pub(crate) struct OpenDatabase {
    pub(crate) database: Database,
    embedded: Option<Embedded>,
}

impl OpenDatabase {
    /// Connect; without a URL, start the private server first and say so. Whether the schema fits
    /// is for the command to ask: some remove one that does not.
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
        let options = options.on_progress(|news| match news {
            Progress::Down { .. } => error!("{news}"),
            news => output::tell(&news.to_string()),
        });
        let embedded = blocking(move || Embedded::start(&options)).await??;
        let database = match connect_or_create(config, &embedded).await {
            Ok(database) => database,
            Err(error) => {
                close(embedded).await?;
                return Err(error.into());
            }
        };
        output::tell(&format!(
            "no DATABASE_URL: private PostgreSQL {} in {}; psql -h {} -U postgres {OURS}",
            database.server_version(),
            embedded.data_dir().display(),
            output::pasteable(&embedded.socket_dir()),
        ));
        Ok(Self { database, embedded: Some(embedded) })
    }

    /// Close the connections, and the server unless others use it too.
    pub(crate) async fn close(self) -> Result<(), Failure> {
        self.database.close().await;
        match self.embedded {
            Some(embedded) => close(embedded).await,
            None => Ok(()),
        }
    }

    /// The same for a command that lists or changes what is there: it makes no database, and starts
    /// none beside that of a running server, whose jobs it would not see.
    pub(crate) async fn with_existing<T, E: Into<Failure>>(
        config: &Config,
        work: impl AsyncFnOnce(&Database) -> Result<T, E>,
    ) -> Result<T, Failure> {
        if config.database.url.is_none() {
            refuse_to_start_another(config).await?;
        }
        Self::with(config, work).await
    }

    /// Do something with the database, and close it whatever came of that.
    pub(crate) async fn with<T, E: Into<Failure>>(
        config: &Config,
        work: impl AsyncFnOnce(&Database) -> Result<T, E>,
    ) -> Result<T, Failure> {
        let opened = Self::open(config).await?;
        let done = work(&opened.database).await;
        opened.close().await?;
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
    // Whatever answers there answers for another database than one that is stopped.
    let served = !matches!(Remote::new(&config.remote).get("/livez").await, Err(RemoteError::Away(_)));
    let found = if presence == Presence::Absent { "holds no database" } else { "holds one that is stopped" };
    match (served, presence) {
        (true, _) => Err(Failure::refused(format!(
            "no DATABASE_URL, and {dir} {found}: the server at {} uses another; name that one's --data-dir, or --database-url",
            config.remote
        ))),
        (false, Presence::Absent) => Err(Failure::refused(format!(
            "no DATABASE_URL, and {dir} {found}: name one by --database-url or --data-dir; `reveille serve` makes one"
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
    // By no settings but the library's own: `create database` works neither inside the transactions
    // of the mode `pooled` nor within a short limit on statements.
    let server = Database::connect(DatabaseOptions::new(embedded.connection_string("postgres"))).await?;
    let created = create(&server).await;
    server.close().await;
    created?;
    Database::connect_to_any_schema(options).await
}

async fn create(server: &Database) -> Result<(), DatabaseError> {
    let connection = server.connection(Purpose::Migrate).await?;
    match connection.execute(&CREATE, &[]).await {
        // Two programs may start on a new directory at once; one of them is first.
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
    done.map_err(|error| Failure::new(Exit::Refused, vec![format!("a defect of this program ended it: {error}")]))
}
