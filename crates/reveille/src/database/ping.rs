//! Whether the database is there.

use super::error::DatabaseError;
use super::pool::{Pool, Pooled};

/// Ask with an empty transaction, on a connection that is already there: when PostgreSQL has no room for another one,
/// those we hold still do their work.
pub(super) async fn ping(pool: &Pool) -> Result<(), DatabaseError> {
    let mut borrowed = Borrowed(Some(pool.get().await?));
    let Some(connection) = &mut borrowed.0 else { return Err(DatabaseError::Closed) };
    connection.transaction().await?.rollback().await?;
    borrowed.give_back();
    Ok(())
}

/// A connection that goes back to the others only when it has answered. One that is left in the middle, because the
/// caller ran out of patience, would make its next user wait for the answer too.
struct Borrowed(Option<Pooled>);

impl Borrowed {
    fn give_back(mut self) {
        self.0 = None;
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        if let Some(pooled) = self.0.take() {
            drop(Pooled::take(pooled));
        }
    }
}
