//! Whether every group was told of what waits for it: pending means due or fresh.
//!
//! The one invariant that no table can enforce; see `docs/messages.md`, "Why nothing is stranded".
//! Reads every head and cursor, so where there are millions it gives up in time instead of
//! burdening the server.

use std::time::Duration;

use tokio::time::timeout;

use super::finding::Finding;
use super::statements::STRANDED;
use crate::database::connection::Connection;
use crate::database::error::DatabaseError;

/// Shorter than the doctor's own, so that the server is told to stop.
const PATIENCE: Duration = Duration::from_secs(4);

/// How many partitions have messages for a group that nothing would ever bring to it.
pub(crate) async fn stranded(connection: &Connection) -> Result<i64, DatabaseError> {
    let row = connection.query_opt(&STRANDED, &[]).await?;
    Ok(row.map_or(0, |row| row.get("stranded")))
}

/// The same, or `None` when it takes too long; then the connection is of no more use.
pub(super) async fn stranded_in_time(connection: &Connection) -> Result<Option<i64>, DatabaseError> {
    if let Ok(answer) = timeout(PATIENCE, stranded(connection)).await {
        return answer.map(Some);
    }
    connection.give_up();
    Ok(None)
}

pub(super) fn judge(stranded: Option<i64>) -> Finding {
    match stranded {
        Some(0) => Finding::ok("stranded", "every group was told of what waits for it"),
        Some(places) => Finding::fail(
            "stranded",
            format!("messages wait in {places} places of which nothing tells their groups: this is a defect"),
            "upkeep repairs it within messages.upkeep_interval; please report it, and who else writes into these tables",
        ),
        None => Finding::warn(
            "stranded",
            format!("whether every group was told of what waits for it could not be read within {PATIENCE:?}"),
            "watch reveille_repairs_total instead: upkeep checks the same in small steps",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;

    #[test]
    fn what_nobody_was_told_of_is_a_failure_and_not_knowing_is_not() {
        assert_eq!(judge(Some(0)).verdict, Verdict::Ok);
        assert_eq!(judge(Some(2)).verdict, Verdict::Fail);
        assert_eq!(judge(None).verdict, Verdict::Warn);
    }
}
