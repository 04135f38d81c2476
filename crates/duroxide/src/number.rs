//! Between duroxide's unsigned numbers and PostgreSQL's signed ones.

use std::time::Duration;

use semver::Version;

/// As `bigint`; the ids of executions and events never come near the limit.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// From `bigint`; what we store is never negative.
pub(crate) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// Seconds, within what an interval can hold.
pub(crate) fn seconds(time: Duration) -> f64 {
    const LONGEST: f64 = 1e10;
    time.as_secs_f64().min(LONGEST)
}

/// A version as one number that sorts as versions do.
pub(crate) fn packed(version: &Version) -> i64 {
    const PART: u64 = (1 << 21) - 1;
    let part = |number: u64| number.min(PART);
    signed(part(version.major) << 42 | part(version.minor) << 21 | part(version.patch))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_versions_sort_as_versions() {
        let versions = ["0.1.9", "0.1.10", "0.2.0", "1.0.0", "1.0.2000", "10.0.0"];
        let numbers: Vec<i64> = versions.iter().map(|text| packed(&text.parse().unwrap())).collect();

        assert!(numbers.is_sorted(), "{numbers:?}");
    }
}
