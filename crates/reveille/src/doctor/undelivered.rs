//! Whether every group will be woken for its undelivered messages: a partition with such messages
//! is noted as having new ones, or the group's cursor in it is due.
//!
//! The one invariant that no table can enforce; see `docs/messages.md`, "Why nothing is stranded".
//! Reads every partition row and cursor, so where there are millions it gives up in time instead of
//! burdening the server.

use std::time::Duration;

use tokio::time::timeout;

use super::finding::Finding;
use super::statements::STRANDED;
use crate::database::connection::Connection;
use crate::database::error::DatabaseError;

/// Shorter than the doctor's own, so that the server is asked to stop.
const PATIENCE: Duration = Duration::from_secs(4);

/// How many partitions have undelivered messages for a group that will not be woken for them.
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
    let fail = |what: String| {
        let remedy = "upkeep repairs it within messages.upkeep_interval; please report it, with what else writes into \
                      these tables";
        Finding::fail("stranded", format!("{what}: this is a bug in Reveille"), remedy)
    };
    match stranded {
        Some(0) => Finding::ok("stranded", "every group will be woken for its undelivered messages"),
        Some(1) => fail("1 partition has undelivered messages that no consumer will be woken for".to_owned()),
        Some(partitions) => {
            fail(format!("{partitions} partitions have undelivered messages that no consumer will be woken for"))
        }
        None => Finding::warn(
            "stranded",
            format!("could not check within {PATIENCE:?} whether every group will be woken for its messages"),
            "watch reveille_repairs_total instead: upkeep checks the same in small steps",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;

    #[test]
    fn a_missing_wake_up_is_a_failure_and_a_check_that_takes_too_long_is_not() {
        assert_eq!(judge(Some(0)).verdict, Verdict::Ok);
        assert_eq!(judge(Some(2)).verdict, Verdict::Fail);
        assert_eq!(judge(None).verdict, Verdict::Warn);
    }
}
