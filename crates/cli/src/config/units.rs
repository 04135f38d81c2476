//! Times and sizes as people write them.

use std::time::Duration;

const TIMES: &[(&str, u64)] =
    &[("ms", 1), ("s", 1000), ("min", 60_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

const SIZES: &[(&str, u64)] = &[
    ("", 1),
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("kB", 1000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
];

/// `250ms`, `12s`, `5min`, `2h`, `1d`.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    let (number, unit) = split(text).ok_or("is no time, such as 12s")?;
    if unit.is_empty() {
        return Err(format!("has no unit, write {number}s or {number}ms"));
    }
    let (_, factor) =
        TIMES.iter().find(|(name, _)| *name == unit).ok_or("has a unit that is none of ms, s, min, h, d")?;
    number.checked_mul(*factor).map(Duration::from_millis).ok_or_else(|| "is too long".to_owned())
}

/// Turns seconds without a unit, such as `2` or `0.5`, into a text for [`time`], in whole
/// milliseconds.
pub(super) fn seconds(text: &str) -> Option<String> {
    let time = Duration::try_from_secs_f64(text.trim().parse().ok()?).ok()?;
    Some(format!("{}ms", time.as_millis()))
}

/// `512`, `512B`, `64KiB`, `16MiB`, `1GiB`.
pub(super) fn size(text: &str) -> Result<usize, String> {
    let (number, unit) = split(text).ok_or("is no size, such as 16MiB")?;
    let (_, factor) =
        SIZES.iter().find(|(name, _)| *name == unit).ok_or("has a unit that is none of B, KiB, MiB, GiB")?;
    let bytes = number.checked_mul(*factor).and_then(|bytes| usize::try_from(bytes).ok());
    bytes.ok_or_else(|| "is too large".to_owned())
}

fn split(text: &str) -> Option<(u64, &str)> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..digits].parse().ok()?, text[digits..].trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(time("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(time("12s"), Ok(Duration::from_secs(12)));
        assert_eq!(time("5 min"), Ok(Duration::from_secs(300)));
        assert_eq!(time("1d"), Ok(Duration::from_secs(86_400)));
        assert_eq!(time("12").unwrap_err(), "has no unit, write 12s or 12ms");
        for wrong in ["", "s", "-1s", "1.5s", "12 parsecs", "99999999999999999999s", "999999999999999999d"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_may_have_units() {
        assert_eq!(size("0"), Ok(0));
        assert_eq!(size("16MiB"), Ok(16 * 1024 * 1024));
        assert_eq!(size("1kB"), Ok(1000));
        for wrong in ["", "MiB", "-1", "1.5MiB", "3 apples", "99999999999GiB"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
