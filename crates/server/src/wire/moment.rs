//! Moments as texts: `2026-05-16T10:20:30.123456Z`.
//!
//! Written always in that one way. Read in the ways that clients write them: with any offset or none (then it is UTC), with
//! a space instead of the T, with or without a fraction, and a day alone.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::told::quoted;
use crate::problem::Problem;

const DAY: i64 = 86_400;
/// Bytes of the longest way to write one, and some.
const TEXT_MAX: usize = 64;

/// As every message has it.
pub(crate) fn spell(moment: SystemTime) -> String {
    let (seconds, micros) = match moment.duration_since(UNIX_EPOCH) {
        Ok(after) => (i64::try_from(after.as_secs()).unwrap_or(i64::MAX), after.subsec_micros()),
        Err(before) => {
            let whole = before.duration().as_micros().div_ceil(1_000_000);
            let seconds = -i64::try_from(whole).unwrap_or(i64::MAX);
            let micros = whole * 1_000_000 - before.duration().as_micros();
            (seconds, u32::try_from(micros).unwrap_or(0))
        }
    };
    let (year, month, day) = civil(seconds.div_euclid(DAY));
    let of_day = seconds.rem_euclid(DAY);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
}

/// The moment, or a problem that names what was to be one.
pub(crate) fn expect(name: &str, text: &str) -> Result<SystemTime, Problem> {
    read(text).ok_or_else(|| {
        Problem::invalid(format!("{name} must be a time such as 2026-05-16T10:20:30Z, not {}", quoted(text)))
    })
}

/// `None` for what is no moment between the years 1 and 9999.
pub(crate) fn read(text: &str) -> Option<SystemTime> {
    // What is read is repeated to its client, so the spaces around it count.
    if text.len() > TEXT_MAX {
        return None;
    }
    let text = text.trim();
    let (date, time) = match text.get(10..11) {
        Some("T" | "t" | " ") => (&text[..10], Some(&text[11..])),
        None if text.len() == 10 => (text, None),
        _ => return None,
    };
    let days = days_of(date)?;
    let (clock, offset) = time.map_or(Some((Duration::ZERO, 0)), time_of)?;
    let seconds = days * DAY - offset;
    let midnight = match u64::try_from(seconds) {
        Ok(after) => UNIX_EPOCH.checked_add(Duration::from_secs(after)),
        Err(_) => UNIX_EPOCH.checked_sub(Duration::from_secs(seconds.unsigned_abs())),
    };
    midnight?.checked_add(clock)
}

/// The days since 1970 of `2026-05-16`.
fn days_of(date: &str) -> Option<i64> {
    let mut parts = date.split('-');
    let (year, month, day) = (number(parts.next()?, 4)?, number(parts.next()?, 2)?, number(parts.next()?, 2)?);
    let valid = parts.next().is_none() && year >= 1 && (1..=12).contains(&month);
    (valid && (1..=days_in(year, month)).contains(&day)).then(|| days(year, month, day))
}

/// Time of day, and how many seconds it is ahead of UTC.
fn time_of(text: &str) -> Option<(Duration, i64)> {
    let zone = text.find(['Z', 'z', '+', '-']).unwrap_or(text.len());
    let (clock, zone) = text.split_at(zone);
    let offset = match zone.as_bytes() {
        [] | [b'Z' | b'z'] => 0,
        [sign @ (b'+' | b'-'), ..] => {
            let (hours, minutes) = offset_of(&zone[1..])?;
            let seconds = (hours <= 23 && minutes <= 59).then_some(hours * 3600 + minutes * 60)?;
            if *sign == b'-' { -seconds } else { seconds }
        }
        _ => return None,
    };
    let (whole, fraction) = clock.split_once('.').map_or((clock, ""), |(whole, fraction)| (whole, fraction));
    let mut parts = whole.split(':');
    let (hour, minute) = (number(parts.next()?, 2)?, number(parts.next()?, 2)?);
    let second = parts.next().map_or(Some(0), |second| number(second, 2))?;
    let digits = fraction.len() <= 9 && fraction.bytes().all(|byte| byte.is_ascii_digit());
    let valid = parts.next().is_none() && hour <= 23 && minute <= 59 && second <= 60 && digits;
    let nanos = valid.then(|| format!("{fraction:0<9}").parse::<u64>().ok()).flatten()?;
    let seconds = u64::try_from(hour * 3600 + minute * 60 + second).ok()?;
    Some((Duration::from_secs(seconds) + Duration::from_nanos(nanos), offset))
}

/// Hours and minutes of `02`, `0230` or `02:30`.
fn offset_of(text: &str) -> Option<(i64, i64)> {
    let (hours, minutes) = text.split_at_checked(2)?;
    let minutes = minutes.strip_prefix(':').unwrap_or(minutes);
    let minutes = if text.len() == 2 { 0 } else { number(minutes, 2)? };
    Some((number(hours, 2)?, minutes))
}

fn number(text: &str, digits: usize) -> Option<i64> {
    let valid = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    valid.then(|| text.parse().ok()).flatten()
}

fn days_in(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 to a date. Years are counted from March, so that the odd day is the last of its year.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let of_year = (153 * month + 2) / 5 + day - 1;
    365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + of_year - 719_468
}

/// The date so many days after 1970-01-01.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let year = year_of_era + era * 400;
    if month < 10 { (year, month + 3, day) } else { (year + 1, month - 9, day) }
}

#[cfg(test)]
mod tests {
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
    fn every_day_of_four_centuries_is_counted() {
        for day in days(1600, 1, 1)..days(2001, 1, 1) {
            let (year, month, of_month) = civil(day);
            assert_eq!(days(year, month, of_month), day);
            assert!((1..=days_in(year, month)).contains(&of_month));
        }
    }

    #[test]
    fn the_ways_of_clients_are_understood() {
        let same = "2026-05-16T08:20:30.500000Z";
        for text in [
            "2026-05-16T10:20:30.5+02:00",
            "2026-05-16 08:20:30.500",
            "2026-05-16T08:20:30.500000+00:00",
            "2026-05-16T01:20:30.5-0700",
            "2026-05-16t08:20:30.5z",
        ] {
            assert_eq!(respelt(text).as_deref(), Some(same), "{text}");
        }
        assert_eq!(respelt("2026-05-16").as_deref(), Some("2026-05-16T00:00:00.000000Z"));
        assert_eq!(respelt("2026-05-16T08:20Z").as_deref(), Some("2026-05-16T08:20:00.000000Z"));
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
    }
}
