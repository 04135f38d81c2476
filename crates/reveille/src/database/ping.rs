//! Whether the database answers.
//!
//! Owns a connection for pings alone, opened by the first one: a busy pool or a long batch says
//! nothing about the database. The connection is kept between pings, and no statement runs on it:
//! when PostgreSQL has no room for another connection, this one still answers.

use std::sync::Arc;

use tokio::sync::Mutex;

use super::connection::Connection;
use super::connector::Purpose;
use super::error::DatabaseError;
use super::shared::Shared;

/// Runs the pings, one at a time.
#[derive(Debug)]
pub(super) struct Probe {
    shared: Arc<Shared>,
    connection: Mutex<Option<Connection>>,
}

impl Probe {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, connection: Mutex::default() }
    }

    /// An empty transaction. A connection that broke, or on which an earlier ping was given up, is
    /// replaced.
    pub(super) async fn ping(&self) -> Result<(), DatabaseError> {
        let mut kept = self.connection.lock().await;
        let connection = match kept.take() {
            Some(connection) if !connection.is_closed() && connection.is_free() => kept.insert(connection),
            _ => kept.insert(self.shared.connect(Purpose::Probe).await?),
        };
        connection.transaction().await?.rollback().await
    }
}
