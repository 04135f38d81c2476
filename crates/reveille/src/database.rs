//! Connections, schema and statements of one PostgreSQL database.
//!
//! Owns every connection of this process to that database: a few shared by callers, one for each
//! batcher that asks. Promises sessions that may write, under READ COMMITTED, with limits on
//! statements and locks; errors that say in one sentence what is true and what to do; and a
//! [`close`](Database::close) that leaves nothing behind. Refuses servers and schemas it does not
//! understand. Knows nothing of messages and jobs: what they keep here is listed in
//! `crate::schema`. Reads no environment; the only files it reads are the root certificates of the
//! system or of `sslrootcert`.
//!
//! Next, in the order of a connection's life: [`options`](DatabaseOptions), `address`, `tls`,
//! `connector`, `driver`, [`connection`](Connection), [`transaction`](Transaction), `resolve`;
//! beside it `statement`, `migrate`.

use std::sync::Arc;

use reveille_wake::Link;
use tracing::{info, warn};

use crate::node::{Broadcaster, Registration, WorkSource};
use crate::{doctor, node};
use migrate::Migrator;
use ping::Probe;
use pool::{Administering, Pool};
use shared::Shared;
use version::Support;

mod address;
mod cause;
pub(crate) mod connection;
pub(crate) mod connector;
mod driver;
pub(crate) mod durability;
pub(crate) mod error;
mod explain;
pub(crate) mod migrate;
pub(crate) mod options;
pub(crate) mod outage;
pub(crate) mod pauses;
mod ping;
mod pipeline;
mod plans;
mod pool;
mod resolve;
pub(crate) mod retry;
mod rights;
mod schema_name;
mod session;
pub(crate) mod shared;
pub(crate) mod sqlstate;
pub(crate) mod statement;
pub(crate) mod statements;
mod tls;
mod transaction;
mod version;
pub(crate) mod warning;

pub use crate::doctor::{ConnectionCounts, Examination, ExamineOptions, Facts, Finding, Verdict, XminHolder};
pub use crate::node::WakeFigures;
pub use crate::schema::{migration_script, schema_fingerprint, statements};
pub use cause::Cause;
pub use connection::{Connection, Param};
pub use connector::Purpose;
pub use durability::Durability;
pub use error::DatabaseError;
pub use migrate::Migrated;
pub(crate) use migrate::source::{Function, Migration, SchemaSource};
pub use migrate::status::{Applied, SchemaStatus};
pub use migrate::uninstall::{Uninstall, Uninstalled};
pub use options::{DatabaseOptions, OptionsError, StatementMode};
pub use pool::{Opener, Pooled};
pub use schema_name::{SchemaName, SchemaNameError};
pub use statement::Statement;
pub use transaction::{CommitOutcome, Transaction};
pub use version::ServerVersion;
pub use warning::Warning;

/// One PostgreSQL database. Clones share everything.
#[derive(Debug, Clone)]
pub struct Database {
    pub(crate) shared: Arc<Shared>,
    pool: Arc<Pool>,
    version: Arc<ServerVersion>,
    warnings: Arc<[Warning]>,
    wake: Arc<node::Service>,
    probe: Arc<Probe>,
}

impl Database {
    /// Connect, and check the server. The schema may still be missing: see
    /// [`migrate`](Self::migrate) and [`check_schema`](Self::check_schema). One that cannot be
    /// upgraded is refused ([`DatabaseError::SchemaRetired`]).
    pub async fn connect(options: DatabaseOptions) -> Result<Self, DatabaseError> {
        let database = Self::connect_to_any_schema(options).await?;
        match database.refuse_retired_schema().await {
            Ok(()) => Ok(database),
            Err(error) => {
                database.close().await;
                Err(error)
            }
        }
    }

    /// As [`connect`](Self::connect), also where the schema cannot be upgraded: to examine or to
    /// [remove](Self::uninstall) it.
    pub async fn connect_to_any_schema(options: DatabaseOptions) -> Result<Self, DatabaseError> {
        let settings = options.settings()?;
        let loading = tokio::task::spawn_blocking(|| Shared::load(settings));
        let shared = Arc::new(loading.await.map_err(|_| DatabaseError::Closed)??);
        let opened = Self::open(Arc::clone(&shared)).await;
        if opened.is_err() {
            close_all(&shared).await;
        }
        opened
    }

    async fn open(shared: Arc<Shared>) -> Result<Self, DatabaseError> {
        let pool = Pool::new(Arc::clone(&shared))?;
        let connection = pool.get().await?;
        let version = connection.version().await?;
        let mut warnings = Durability::read(&connection).await?.warnings();
        if shared.settings.address.is_unverified() {
            warnings.push(Warning::UnverifiedTls);
        }
        if version.support() == Support::NewerThanTested {
            warnings.push(Warning::NewerPostgres { version: version.to_string() });
        }
        for warning in &warnings {
            warn!("{warning}");
        }
        info!(server = connection.place().server, %version, schema = %shared.settings.schema, "connected to PostgreSQL");
        drop(connection);
        let wake = Arc::new(node::Service::new(Arc::clone(&shared)));
        let probe = Arc::new(Probe::new(Arc::clone(&shared)));
        Ok(Self { shared, pool: Arc::new(pool), version: Arc::new(version), warnings: warnings.into(), wake, probe })
    }

    /// The same database with another schema, for a crate that keeps tables of its own: a few
    /// connections more, but the same listener, heartbeat and broadcaster. Closing either closes
    /// both.
    pub fn with_schema(&self, schema: SchemaName) -> Result<Self, DatabaseError> {
        let shared = Arc::new(self.shared.with_schema(schema));
        let pool = Arc::new(Pool::new(Arc::clone(&shared))?);
        Ok(Self { shared, pool, ..self.clone() })
    }

    /// A connection of the caller's own, for a batcher. Not limited by the pool; it lives until it
    /// is dropped, breaks, or the database is closed. When it broke, ask again.
    pub async fn connection(&self, purpose: Purpose) -> Result<Connection, DatabaseError> {
        self.shared.connect(purpose).await
    }

    /// Borrow one of the few shared connections. Waits for a free one as long as the connect
    /// timeout.
    pub async fn acquire(&self) -> Result<Pooled, DatabaseError> {
        self.pool.get().await
    }

    /// As [`acquire`](Self::acquire), for reads and changes of administration, which may be slow:
    /// they get half of the shared connections at most.
    pub(crate) async fn administer(&self) -> Result<Administering, DatabaseError> {
        self.pool.get_for_administration().await
    }

    /// Whether PostgreSQL answers, on a connection of its own that the first call opens and that is
    /// kept.
    pub async fn ping(&self) -> Result<(), DatabaseError> {
        self.probe.ping().await
    }

    /// The version of the server.
    pub fn server_version(&self) -> &ServerVersion {
        &self.version
    }

    /// The schema that holds everything we make.
    pub fn schema(&self) -> &SchemaName {
        &self.shared.settings.schema
    }

    /// What the operator should know; logged once when we connected.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Bring the schema to what another crate's source says. For a schema of its own: see
    /// [`with_schema`](Self::with_schema).
    pub async fn migrate_from(&self, source: &'static SchemaSource) -> Result<Migrated, DatabaseError> {
        let mut connection = self.connection(Purpose::Migrate).await?.patient();
        Migrator { connection: &mut connection, source }.up().await
    }

    /// Read-only answers to "is everything as it should be?", each within a few seconds.
    pub async fn examine(&self, options: &ExamineOptions) -> Examination {
        doctor::examine(self, options).await
    }

    /// Wake a source of work for whatever happens in this database. The first one starts the LISTEN
    /// connection.
    pub fn register<S: WorkSource>(&self, source: Arc<S>) -> Registration {
        self.wake.register(source)
    }

    /// Sends hints to the other nodes of this schema.
    pub fn broadcaster(&self) -> Broadcaster {
        self.wake.broadcaster()
    }

    /// The channel on which the nodes of this schema exchange hints. A producer that is no node may
    /// notify it with `hint`, a line break, and one line for each key: the source's name, a space,
    /// the key.
    pub fn hint_channel(&self) -> &str {
        self.wake.channel()
    }

    /// How often the heartbeat reads the next due times; it reads twice as far ahead.
    pub(crate) fn heartbeat(&self) -> std::time::Duration {
        self.shared.settings.heartbeat
    }

    /// How the LISTEN connection is.
    pub fn link(&self) -> Link {
        self.wake.link()
    }

    /// What listener and broadcaster have counted.
    pub fn wake_figures(&self) -> WakeFigures {
        self.wake.figures()
    }

    /// Close every connection, also those that batchers own. What is in flight has five seconds to
    /// finish; later requests are refused with [`DatabaseError::Closed`].
    pub async fn close(&self) {
        self.wake.broadcaster().flush().await;
        self.pool.close();
        close_all(&self.shared).await;
    }
}

async fn close_all(shared: &Shared) {
    shared.closing.cancel();
    shared.tasks.close();
    shared.tasks.wait().await;
}
