//! How far the clocks of this machine and the database are apart.
//!
//! Nothing in Reveille depends on it: the database's clock decides. People who compare logs do.

use std::time::{Duration, Instant, SystemTime};

use super::finding::Finding;
use super::statements::CLOCK;
use crate::database::connection::Connection;
use crate::database::error::DatabaseError;

#[derive(Debug, Clone, Copy)]
pub(super) struct Skew {
    pub(super) ahead_seconds: f64,
    /// The measurement is no better than half the round trip.
    round_trip: Duration,
}

#[expect(clippy::disallowed_methods, reason = "this is the one place that compares our clock with the database's")]
pub(super) async fn measure(connection: &Connection) -> Result<Skew, DatabaseError> {
    // The first call prepares the statement and would count as round trip.
    connection.query_opt(&CLOCK, &[]).await?;
    let (begun, before) = (Instant::now(), SystemTime::now());
    let row = connection.query_opt(&CLOCK, &[]).await?;
    let round_trip = begun.elapsed();
    let theirs = row.map_or(before, |row| row.get(0));
    let middle = before + round_trip / 2;
    let ahead_seconds = match theirs.duration_since(middle) {
        Ok(ahead) => ahead.as_secs_f64(),
        Err(behind) => -behind.duration().as_secs_f64(),
    };
    Ok(Skew { ahead_seconds, round_trip })
}

pub(super) fn judge(skew: Skew, tolerated: Duration) -> Finding {
    let direction = if skew.ahead_seconds < 0.0 { "behind" } else { "ahead of" };
    let sentence = format!("the database's clock is {:.3} s {direction} ours", skew.ahead_seconds.abs());
    if skew.ahead_seconds.abs() <= (tolerated + skew.round_trip / 2).as_secs_f64() {
        Finding::ok("clock", sentence)
    } else {
        Finding::warn("clock", sentence, "set both by NTP; queues are not affected, comparing logs is")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;

    #[test]
    fn a_difference_beyond_what_is_tolerated_is_a_warning() {
        let skew = |ahead_seconds| Skew { ahead_seconds, round_trip: Duration::from_millis(2) };

        assert_eq!(judge(skew(0.5), Duration::from_secs(1)).verdict, Verdict::Ok);
        assert_eq!(judge(skew(-1.5), Duration::from_secs(1)).sentence, "the database's clock is 1.500 s behind ours");
        assert_eq!(judge(skew(-1.5), Duration::from_secs(1)).verdict, Verdict::Warn);
    }
}
