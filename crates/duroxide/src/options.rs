//! How a provider is opened.
//!
//! Owns the options and their defaults. One builder behind every constructor: a database of the
//! provider's own, or one that is shared with the rest of the program, together with its listener.
//!
//! Next: [`crate::provider`].

use reveille::database::{Database, DatabaseError, DatabaseOptions, SchemaName, SchemaNameError};

use crate::long_poll::{ConfigFaults, LongPollConfig};
use crate::provider::PostgresProvider;

/// The schema of a provider's tables by default.
const DEFAULT_SCHEMA: &str = "duroxide";
/// Slots, renewals and clients of a runtime need connections at the same time. The other providers
/// have as many.
const POOL_SIZE: usize = 10;

/// How a provider is opened.
#[derive(Debug, Clone)]
#[must_use = "options do nothing until opened"]
pub struct PostgresProviderOptions {
    place: Place,
    schema: String,
    long_poll: LongPollConfig,
    pool_size: Option<usize>,
}

#[derive(Debug, Clone)]
enum Place {
    Nowhere,
    Url(String),
    Shared(Database),
}

impl Default for PostgresProviderOptions {
    fn default() -> Self {
        let schema = DEFAULT_SCHEMA.to_owned();
        Self { place: Place::Nowhere, schema, long_poll: LongPollConfig::on(), pool_size: None }
    }
}

impl PostgresProviderOptions {
    /// A database of the provider's own, closed with it.
    ///
    /// Default: none; this or [`database`](Self::database) must be given.
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.place = Place::Url(url.into());
        self
    }

    /// A database that the program uses already. Its own schema must be migrated: programs find
    /// each other there, those that wait for work and those that only send it.
    ///
    /// Default: none; this or [`url`](Self::url) must be given.
    pub fn database(mut self, database: &Database) -> Self {
        self.place = Place::Shared(database.clone());
        self
    }

    /// The schema for this provider's tables and nothing else; made if it is not there.
    ///
    /// Default: `duroxide`.
    pub fn schema(mut self, name: impl Into<String>) -> Self {
        self.schema = name.into();
        self
    }

    /// How fetches wait for work.
    ///
    /// Default: on, see [`LongPollConfig::on`].
    pub fn long_poll(mut self, config: LongPollConfig) -> Self {
        self.long_poll = config;
        self
    }

    /// How many connections a database of the provider's own shares among its callers.
    ///
    /// Default: 10. Of no effect on a shared database.
    pub fn pool_size(mut self, connections: usize) -> Self {
        self.pool_size = Some(connections);
        self
    }

    /// For the constructors that `duroxide-pg` has too; nothing else reads the environment.
    pub(crate) fn pool_size_of_environment(mut self) -> Self {
        #[expect(clippy::disallowed_methods, reason = "the constructors of duroxide-pg read it; callers rely on it")]
        let value = std::env::var("DUROXIDE_PG_POOL_MAX").ok();
        self.pool_size = value.and_then(|value| value.parse().ok()).or(self.pool_size);
        self
    }

    /// Connects if it must, brings the schema up to date, and returns the provider.
    pub async fn open(self) -> Result<PostgresProvider, ProviderOpenError> {
        let schema: SchemaName = self.schema.parse()?;
        let config = self.long_poll.validate()?;
        match self.place {
            Place::Nowhere => Err(ProviderOpenError::NoDatabase),
            Place::Shared(database) => {
                database.check_schema().await?;
                Ok(PostgresProvider::start(&database.with_schema(schema)?, config, false).await?)
            }
            Place::Url(url) => {
                let options = DatabaseOptions::new(url).application_name("reveille-duroxide");
                let options = options.pool_size(self.pool_size.unwrap_or(POOL_SIZE));
                let database = Database::connect(options).await?;
                let opened = open_own(&database, schema, config).await;
                if opened.is_err() {
                    database.close().await;
                }
                Ok(opened?)
            }
        }
    }
}

async fn open_own(
    database: &Database,
    schema: SchemaName,
    config: LongPollConfig,
) -> Result<PostgresProvider, DatabaseError> {
    // Nodes find each other in the tables of the engine: also a program that never waits sends
    // hints to those that do.
    database.migrate().await?;
    PostgresProvider::start(&database.with_schema(schema)?, config, true).await
}

/// Why a provider could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProviderOpenError {
    /// Neither a URL nor a database was given.
    #[error("a provider needs a database: give a URL or share one")]
    NoDatabase,
    /// The schema's name cannot be used.
    #[error(transparent)]
    Schema(#[from] SchemaNameError),
    /// The way to wait cannot be used; every fault is listed.
    #[error(transparent)]
    LongPoll(#[from] ConfigFaults),
    /// The database could not be reached or migrated.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}
