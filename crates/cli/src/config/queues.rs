//! The settings of the queues themselves.

use reveille::messages::MessagesOptions;
use reveille_wake::{BackoffOptions, PollModeOptions};

use super::reader::Reader;

pub(super) fn read(read: &mut Reader<'_>) -> MessagesOptions {
    let shortest = read.pause("messages.watch_interval");
    let poll_mode = PollModeOptions {
        shortest,
        longest: PollModeOptions::DEFAULT.longest.max(shortest),
        ..PollModeOptions::DEFAULT
    };
    let backoff = BackoffOptions {
        base: read.time("messages.watch_pause"),
        cap: read.time("messages.watch_pause_max"),
        threshold: u32::try_from(read.count("messages.watch_pause_after")).unwrap_or(u32::MAX),
        multiplier: read.factor("messages.watch_pause_factor"),
    };
    let options = MessagesOptions::default()
        .payload_bytes_max(read.size("messages.max_payload"))
        .upkeep_interval(read.time("messages.upkeep_interval"))
        .poll_mode(poll_mode)
        .backoff(backoff);
    read.keys("messages.encryption_keys")
        .into_iter()
        .fold(options, |options, (id, key)| options.encryption_key(id, key))
}

/// `1:digits,2:digits`, or the digits of one key, which is number 1.
pub(super) fn keys(text: &str) -> Option<Vec<(i32, [u8; 32])>> {
    let key = |text: &str| {
        let (id, digits) = text.split_once(':').unwrap_or(("1", text));
        Some((id.trim().parse().ok().filter(|id| *id > 0)?, bytes(digits.trim())?))
    };
    text.split(',').map(str::trim).filter(|text| !text.is_empty()).map(key).collect()
}

fn bytes(digits: &str) -> Option<[u8; 32]> {
    let mut key = [0; 32];
    if digits.len() != 64 || !digits.is_ascii() {
        return None;
    }
    for (at, byte) in key.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_alone_and_by_number() {
        let digits = "0f".repeat(32);

        assert_eq!(keys(""), Some(vec![]));
        assert_eq!(keys(&digits), Some(vec![(1, [15; 32])]));
        assert_eq!(keys(&format!("1:{digits}, 7:{}", "ff".repeat(32))), Some(vec![(1, [15; 32]), (7, [255; 32])]));
        for wrong in
            ["x", &"0".repeat(63), &"g".repeat(64), &format!("a:{digits}"), &format!("-1:{digits}"), &"é".repeat(32)]
        {
            assert_eq!(keys(wrong), None, "{wrong}");
        }
    }
}
