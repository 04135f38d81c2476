//! What the connections of one database share.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::connection::Connection;
use super::connector::{Connector, Purpose};
use super::error::DatabaseError;
use super::options::Settings;
use super::schema_name::SchemaName;
use super::session;
use super::statement::Texts;

/// Settings, texts and tasks of one [`Database`](super::Database), reachable from each of its
/// connections.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) settings: Settings,
    pub(crate) connector: Connector,
    /// The way to the server itself, when the other leads through a pooler.
    pub(crate) listen: Connector,
    pub(crate) texts: Texts,
    /// What opens a transaction in pooled mode.
    pub(crate) opening: String,
    /// Every task of this database; closing waits for them.
    pub(crate) tasks: TaskTracker,
    pub(crate) closing: CancellationToken,
}

impl Shared {
    /// Read the certificates that the settings name. Blocks.
    pub(crate) fn load(settings: Settings) -> Result<Self, DatabaseError> {
        let connector = Connector::load(&settings.address)?;
        let listen = settings.listen.as_ref().map(Connector::load).transpose()?;
        Ok(Self {
            listen: listen.unwrap_or_else(|| connector.clone()),
            connector,
            texts: Texts::new(settings.schema.clone()),
            opening: session::opening(&settings),
            settings,
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
        })
    }

    /// The same with another schema: the same tasks, the same close.
    pub(crate) fn with_schema(&self, schema: SchemaName) -> Self {
        let settings = Settings { schema, ..self.settings.clone() };
        Self {
            connector: self.connector.clone(),
            listen: self.listen.clone(),
            texts: Texts::new(settings.schema.clone()),
            opening: self.opening.clone(),
            settings,
            tasks: self.tasks.clone(),
            closing: self.closing.clone(),
        }
    }

    /// Open a connection of the caller's own.
    pub(crate) async fn connect(self: &Arc<Self>, purpose: Purpose) -> Result<Connection, DatabaseError> {
        if self.closing.is_cancelled() {
            return Err(DatabaseError::Closed);
        }
        let opened = self.connector.open(&self.settings, purpose).await?;
        Ok(Connection::start(opened, Arc::clone(self)))
    }
}
