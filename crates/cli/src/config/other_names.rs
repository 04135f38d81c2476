//! Settings by the names that Queen MQ and the library of jobs gave them, so that a deployment can
//! be moved without a new configuration.
//!
//! Our own names win. Names without a meaning here are accepted, and `serve` logs a warning.

use super::units;

/// A name, the setting it means, and the unit of a bare number.
struct OtherName {
    variable: &'static str,
    key: &'static str,
    unit: &'static str,
}

const OTHER_NAMES: &[OtherName] = &[
    OtherName { variable: "REVEILLE_FALLBACK_INTERVAL_S", key: "jobs.fallback_interval", unit: "s" },
    OtherName { variable: "MAX_INTENTIONS", key: "http.max_waiters", unit: "" },
    OtherName { variable: "DEFAULT_TIMEOUT", key: "http.pop_timeout", unit: "ms" },
    OtherName { variable: "DEFAULT_BATCH_SIZE", key: "http.pop_batch", unit: "" },
    OtherName { variable: "DEFAULT_SUBSCRIPTION_MODE", key: "http.subscription", unit: "" },
    OtherName { variable: "QUEEN_ENCRYPTION_KEY", key: "messages.encryption_keys", unit: "" },
    OtherName { variable: "RETENTION_INTERVAL", key: "messages.upkeep_interval", unit: "ms" },
    OtherName { variable: "POLL_INTERVAL_MS", key: "messages.watch_interval", unit: "ms" },
    OtherName { variable: "POP_WAIT_BASE_INTERVAL_MS", key: "messages.watch_pause", unit: "ms" },
    OtherName { variable: "POP_WAIT_BACKOFF_THRESHOLD", key: "messages.watch_pause_after", unit: "" },
    OtherName { variable: "POP_WAIT_BACKOFF_MULTIPLIER", key: "messages.watch_pause_factor", unit: "" },
    OtherName { variable: "POP_WAIT_MAX_INTERVAL_MS", key: "messages.watch_pause_max", unit: "ms" },
];

/// Names that set nothing, and why.
const MEANINGLESS: &[(&str, &str)] = &[
    ("POLL_WORKER_COUNT", "one dispatcher claims for all waiting pops, and only when it is woken"),
    ("USE_PRIORITY_DISPATCH", "acks and renewals have a connection of their own and need no priority"),
];

/// The names of a setting beside ours.
pub(super) fn variables(key: &str) -> impl Iterator<Item = &'static str> {
    OTHER_NAMES.iter().filter(move |other| other.key == key).map(|other| other.variable)
}

/// Adds the unit of the name to a bare number.
pub(super) fn with_unit(variable: &str, text: String) -> String {
    let other = OTHER_NAMES.iter().find(|other| other.variable == variable);
    let bare = text.trim().bytes().all(|byte| byte.is_ascii_digit());
    match other {
        Some(other) if other.unit == "s" => units::seconds(&text).unwrap_or(text),
        Some(other) if bare => format!("{}{}", text.trim(), other.unit),
        _ => text,
    }
}

/// The names that are set and mean nothing here, with the reason.
pub(crate) fn meaningless(is_set: impl Fn(&str) -> bool) -> impl Iterator<Item = (&'static str, &'static str)> {
    MEANINGLESS.iter().copied().filter(move |(name, _)| is_set(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_number_gets_the_unit_of_its_name() {
        assert_eq!(with_unit("DEFAULT_TIMEOUT", "30000".to_owned()), "30000ms");
        assert_eq!(with_unit("DEFAULT_TIMEOUT", "30s".to_owned()), "30s");
        assert_eq!(with_unit("MAX_INTENTIONS", "5".to_owned()), "5");
        assert_eq!(with_unit("REVEILLE_FALLBACK_INTERVAL_S", "0.5".to_owned()), "500ms");
        assert_eq!(with_unit("REVEILLE_FALLBACK_INTERVAL_S", "5s".to_owned()), "5s");
        assert_eq!(with_unit("REVEILLE_HTTP_POP_TIMEOUT", "5".to_owned()), "5");
    }

    #[test]
    fn a_name_without_a_meaning_is_reported_only_when_it_is_set() {
        let reported: Vec<&str> = meaningless(|name| name == "POLL_WORKER_COUNT").map(|(name, _)| name).collect();

        assert_eq!(reported, ["POLL_WORKER_COUNT"]);
    }
}
