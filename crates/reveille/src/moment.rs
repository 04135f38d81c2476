//! Moments as texts: `2026-05-16T10:20:30.123456Z`.
//!
//! The one place where a moment becomes text and a text a moment. Written always in UTC. Read in
//! the ways that clients write them: with any offset or none (then it is UTC), with a space instead
//! of the T, with or without a fraction, and a day alone. Promises that no text and no moment makes
//! it panic.

use std::time::{SystemTime, UNIX_EPOCH};

use jiff::SignedDuration;
use jiff::civil::{DateTime, Time, datetime};
use jiff::fmt::temporal::{DateTimePrinter, Pieces};

const EPOCH: DateTime = datetime(1970, 1, 1, 0, 0, 0, 0);
const SECONDS: DateTimePrinter = DateTimePrinter::new().precision(Some(0));
const MICROSECONDS: DateTimePrinter = DateTimePrinter::new().precision(Some(6));
const DAY: u32 = 86_400;
/// Bytes of the longest way to write one, and a few more.
const TEXT_MAX: usize = 64;

/// With microseconds, as PostgreSQL keeps them: `2026-05-16T10:20:30.123456Z`. Beyond the year 9999
/// its last moment.
pub fn spell(moment: SystemTime) -> String {
    MICROSECONDS.datetime_to_string(&civil(moment)) + "Z"
}

/// For people: `2026-05-16T10:20:30Z`.
pub fn spell_seconds(moment: SystemTime) -> String {
    SECONDS.datetime_to_string(&civil(moment)) + "Z"
}

/// `None` for a text that is no moment between the years 1 and 9999.
pub fn read(text: &str) -> Option<SystemTime> {
    // Callers repeat what they could not read, so the spaces around it count. A bracket would name
    // a zone or a calendar, and a moment that ignored it would be another one.
    if text.len() > TEXT_MAX || text.contains('[') {
        return None;
    }
    let pieces = Pieces::parse(text.trim()).ok()?;
    let local = pieces.date().to_datetime(pieces.time().unwrap_or(Time::midnight()));
    let ahead = pieces.to_numeric_offset().map_or(0, jiff::tz::Offset::seconds);
    if local.year() < 1 || ahead.unsigned_abs() >= DAY {
        return None;
    }
    let utc = local.checked_sub(SignedDuration::from_secs(ahead.into())).ok()?;
    let since = utc.duration_since(EPOCH);
    if since.is_negative() {
        UNIX_EPOCH.checked_sub(since.unsigned_abs())
    } else {
        UNIX_EPOCH.checked_add(since.unsigned_abs())
    }
}

fn civil(moment: SystemTime) -> DateTime {
    match moment.duration_since(UNIX_EPOCH) {
        Ok(after) => EPOCH.checked_add(after).unwrap_or(DateTime::MAX),
        Err(before) => EPOCH.checked_sub(before.duration()).unwrap_or(DateTime::MIN),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn respelt(text: &str) -> Option<String> {
        read(text).map(spell)
    }

    #[test]
    fn a_moment_comes_back_as_it_was_spelt() {
        for text in [
            "1970-01-01T00:00:00.000000Z",
            "2026-05-16T10:20:30.123456Z",
            "2000-02-29T23:59:59.999999Z",
            "1969-12-31T23:59:59.500000Z",
            "0001-01-01T00:00:00.000000Z",
            "9999-12-31T23:59:59.000001Z",
        ] {
            assert_eq!(respelt(text).as_deref(), Some(text));
        }
    }

    #[test]
    fn people_read_whole_seconds() {
        let at = |seconds: u64| spell_seconds(UNIX_EPOCH + Duration::from_millis(seconds * 1000 + 999));

        assert_eq!(at(0), "1970-01-01T00:00:00Z");
        assert_eq!(at(951_827_696), "2000-02-29T12:34:56Z");
        assert_eq!(at(1_772_368_205), "2026-03-01T12:30:05Z");
        assert_eq!(at(4_102_444_799), "2099-12-31T23:59:59Z");
    }

    #[test]
    fn a_moment_beyond_the_calendar_is_spelt_as_its_end() {
        let far = UNIX_EPOCH + Duration::from_secs(1 << 60);

        assert_eq!(spell(far), "9999-12-31T23:59:59.999999Z");
        assert!(spell(UNIX_EPOCH - Duration::from_secs(1 << 60)).starts_with("-009999-01-01"));
    }

    #[test]
    fn the_ways_of_clients_are_understood() {
        let same = "2026-05-16T08:20:30.500000Z";
        for text in [
            "2026-05-16T10:20:30.5+02:00",
            "2026-05-16 08:20:30.500",
            "2026-05-16T08:20:30.500000+00:00",
            "2026-05-16T01:20:30.5-0700",
            "2026-05-16T03:20:30.5-05",
            "2026-05-16t08:20:30.5z",
            " 2026-05-16T08:20:30.5Z\n",
        ] {
            assert_eq!(respelt(text).as_deref(), Some(same), "{text}");
        }
        assert_eq!(respelt("2026-05-16").as_deref(), Some("2026-05-16T00:00:00.000000Z"));
        assert_eq!(respelt("2026-05-16T08:20Z").as_deref(), Some("2026-05-16T08:20:00.000000Z"));
        assert!(respelt("2016-12-31T23:59:60Z").is_some(), "a leap second");
    }

    #[test]
    fn what_is_no_moment_is_refused() {
        for text in [
            "",
            "now",
            "2026",
            "2026-13-01",
            "2026-02-29",
            "2026-05-16X10:20:30Z",
            "2026-05-16T25:00:00Z",
            "2026-05-16T10:20:30.Z9",
            "2026-05-16T10:20:30+99:00",
            "2026-05-16T10:20:30+24:00",
            "0000-01-01",
            "-2026-05-16",
            "2026-05-16T",
            "1🦆6-05-16T1",
            "2026-05-16T10:20:30.1234567890Z",
            "2026-05-16T10:20:30 Z",
            "2026-05-16T10:20:30+1é2",
            "2026-05-16T10:20:30+é",
            "2026-05-16T10:20:30+02:",
            "2026-05-16T10:20:30+0:200",
            "2026-05-16T10:20:30+",
            "2026-05-16T10:20:30+02:00[Europe/Paris]",
            "9999-12-31T23:59:59-01:00",
        ] {
            assert_eq!(respelt(text), None, "{text}");
        }
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(20_000))]

        #[test]
        fn no_text_makes_a_reader_panic(text in proptest::prelude::any::<String>()) {
            let _ = respelt(&text);
        }

        /// Close to a moment, where the slices are.
        #[test]
        fn nothing_like_a_moment_makes_a_reader_panic(
            date in "[0-9é-]{0,2}2026-05-1[0-9é]", time in "[Tt é]?[0-9:.é]{0,12}", zone in "[Zz+é-]?[0-9:é]{0,6}",
        ) {
            let _ = respelt(&format!("{date}{time}{zone}"));
        }

        #[test]
        fn every_moment_of_postgresql_can_be_spelt(micros in proptest::prelude::any::<i64>()) {
            let apart = Duration::from_micros(micros.unsigned_abs());
            let moment = if micros < 0 { UNIX_EPOCH.checked_sub(apart) } else { UNIX_EPOCH.checked_add(apart) };
            let text = spell(moment.expect("within an i64 of seconds"));
            if !text.starts_with('-') && !text.starts_with("0000") && !text.starts_with("9999") {
                assert_eq!(read(&text), moment);
            }
        }
    }
}
