//! Whether there is room: for notifications, and for our connections.

use super::finding::Finding;
use super::statements::{CONNECTIONS, NOTIFY_QUEUE};
use crate::database::connection::Connection;
use crate::database::error::DatabaseError;

/// Connections of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionCounts {
    /// `max_connections`.
    pub allowed: i64,
    /// Kept for superusers and reserved roles.
    pub reserved: i64,
    /// In use, ours included.
    pub used: i64,
}

pub(super) async fn notify_queue(connection: &Connection) -> Result<f64, DatabaseError> {
    let row = connection.query_opt(&NOTIFY_QUEUE, &[]).await?;
    Ok(row.map_or(0.0, |row| row.get(0)))
}

pub(super) fn judge_notify_queue(usage: f64) -> Finding {
    let sentence = format!("the queue of notifications is {:.1} % full", usage * 100.0);
    let remedy = "find the session that listens inside a long transaction, and end it";
    match usage {
        ..0.1 => Finding::ok("notify queue", sentence),
        ..0.5 => Finding::warn("notify queue", sentence, remedy),
        _ => Finding::fail("notify queue", format!("{sentence}; when it is full, commits with NOTIFY fail"), remedy),
    }
}

pub(super) async fn connections(connection: &Connection) -> Result<ConnectionCounts, DatabaseError> {
    let row = connection.query_opt(&CONNECTIONS, &[]).await?;
    let counts = row.map(|row| ConnectionCounts {
        allowed: row.get("allowed"),
        reserved: row.get("reserved"),
        used: row.get("used"),
    });
    Ok(counts.unwrap_or(ConnectionCounts { allowed: 0, reserved: 0, used: 0 }))
}

pub(super) fn judge_connections(counts: ConnectionCounts, needed: u32) -> Finding {
    let ConnectionCounts { allowed, reserved, used } = counts;
    let free = (allowed - reserved - used).max(0);
    let sentence = format!("{used} of {allowed} connections are used, {reserved} are reserved, we need {needed}");
    let remedy = "raise max_connections, lower our pool sizes, or put a pooler in between";
    if free < i64::from(needed) {
        Finding::fail("connections", sentence, remedy)
    } else if free < 2 * i64::from(needed) {
        Finding::warn("connections", format!("{sentence}: a second process would not fit"), remedy)
    } else {
        Finding::ok("connections", sentence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;

    #[test]
    fn what_we_need_must_fit_beside_what_is_used() {
        let judge =
            |used, needed| judge_connections(ConnectionCounts { allowed: 100, reserved: 3, used }, needed).verdict;

        assert_eq!(judge(10, 8), Verdict::Ok);
        assert_eq!(judge(85, 8), Verdict::Warn);
        assert_eq!(judge(95, 8), Verdict::Fail);
        assert_eq!(judge(97, 0), Verdict::Ok);
    }

    #[test]
    fn a_filling_queue_of_notifications_is_found_early() {
        assert_eq!(judge_notify_queue(0.0).verdict, Verdict::Ok);
        assert_eq!(judge_notify_queue(0.2).verdict, Verdict::Warn);
        assert_eq!(judge_notify_queue(0.7).verdict, Verdict::Fail);
    }
}
