//! The few connections that callers and administration share.
//!
//! Promises a free connection within the connect timeout, or a sentence about why there is none. A
//! connection whose caller gave up in the middle of a statement is not given to the next caller.
//! Batchers do not use the pool: they would wait behind a caller's slow query. Administration,
//! whose reads may be slow, gets half of the connections at most: pops that begin a group, and
//! transactions, find one free however many lists are being read.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use deadpool::Runtime;
use deadpool::managed::{self, Metrics, Object, PoolError, RecycleError, RecycleResult};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::connection::Connection;
use super::connector::Purpose;
use super::error::DatabaseError;
use super::shared::Shared;

/// A borrowed connection; it goes back when it is dropped.
pub type Pooled = Object<Opener>;

/// A connection borrowed for administration, with the permit for it.
#[derive(Debug)]
pub(crate) struct Administering {
    /// Goes back before the permit does.
    connection: Pooled,
    _permit: OwnedSemaphorePermit,
}

impl Deref for Administering {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

/// Opens the pool's connections.
#[derive(Debug)]
pub struct Opener {
    shared: Arc<Shared>,
}

impl managed::Manager for Opener {
    type Type = Connection;
    type Error = DatabaseError;

    async fn create(&self) -> Result<Connection, DatabaseError> {
        self.shared.connect(Purpose::Caller).await
    }

    async fn recycle(&self, connection: &mut Connection, _: &Metrics) -> RecycleResult<DatabaseError> {
        if connection.is_closed() || !connection.is_free() {
            return Err(RecycleError::message("the connection is closed, or a caller gave up on it"));
        }
        Ok(())
    }
}

#[derive(Debug)]
pub(crate) struct Pool {
    connections: managed::Pool<Opener>,
    size: usize,
    administration: Arc<Semaphore>,
    patience: Duration,
}

impl Pool {
    pub(crate) fn new(shared: Arc<Shared>) -> Result<Self, DatabaseError> {
        let (size, patience) = (shared.settings.pool_size, shared.settings.connect_timeout);
        let connections = managed::Pool::builder(Opener { shared })
            .max_size(size)
            .wait_timeout(Some(patience))
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|_| DatabaseError::Closed)?;
        let administration = Arc::new(Semaphore::new(administration_share(size)));
        Ok(Self { connections, size, administration, patience })
    }

    /// One for administration: at most half of the pool, so that slow reads leave the rest to
    /// callers.
    pub(crate) async fn get_for_administration(&self) -> Result<Administering, DatabaseError> {
        let permit = timeout(self.patience, Arc::clone(&self.administration).acquire_owned()).await;
        let busy = |_| DatabaseError::Busy { size: administration_share(self.size), waited: self.patience };
        let permit = permit.map_err(busy)?.map_err(|_| DatabaseError::Closed)?;
        Ok(Administering { connection: self.get().await?, _permit: permit })
    }

    pub(crate) async fn get(&self) -> Result<Pooled, DatabaseError> {
        self.connections.get().await.map_err(|error| match error {
            PoolError::Backend(error) => error,
            PoolError::Timeout(_) => DatabaseError::Busy { size: self.size, waited: self.patience },
            PoolError::Closed | PoolError::NoRuntimeSpecified | PoolError::PostCreateHook(_) => DatabaseError::Closed,
        })
    }

    pub(crate) fn close(&self) {
        self.administration.close();
        self.connections.close();
    }
}

fn administration_share(size: usize) -> usize {
    size.div_ceil(2)
}
