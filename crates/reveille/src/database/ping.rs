//! Whether the database is there.

use super::error::DatabaseError;
use super::pool::Pool;

/// Ask with an empty transaction, on a connection that is already there: when PostgreSQL has no room for another one,
/// those we hold still do their work.
pub(super) async fn ping(pool: &Pool) -> Result<(), DatabaseError> {
    let mut connection = pool.get().await?;
    connection.transaction().await?.rollback().await
}
