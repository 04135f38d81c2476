//! Settings by the names that Queen MQ and the jobs' own library gave them, so that a deployment
//! can be moved without a new configuration.
//!
//! Ours are stronger. What has no meaning in this design is accepted and told.

use super::units;

/// Which setting a name means, and the unit of its bare number.
struct Seed {
    variable: &'static str,
    key: &'static str,
    unit: &'static str,
}

const SEEDS: &[Seed] = &[
    Seed { variable: "REVEILLE_FALLBACK_INTERVAL_S", key: "jobs.fallback_interval", unit: "s" },
    Seed { variable: "MAX_INTENTIONS", key: "http.max_waiters", unit: "" },
    Seed { variable: "DEFAULT_TIMEOUT", key: "http.pop_timeout", unit: "ms" },
    Seed { variable: "DEFAULT_BATCH_SIZE", key: "http.pop_batch", unit: "" },
    Seed { variable: "DEFAULT_SUBSCRIPTION_MODE", key: "http.subscription", unit: "" },
    Seed { variable: "QUEEN_ENCRYPTION_KEY", key: "messages.encryption_keys", unit: "" },
    Seed { variable: "RETENTION_INTERVAL", key: "messages.upkeep_interval", unit: "ms" },
    Seed { variable: "POLL_INTERVAL_MS", key: "messages.watch_interval", unit: "ms" },
    Seed { variable: "POP_WAIT_BASE_INTERVAL_MS", key: "messages.watch_pause", unit: "ms" },
    Seed { variable: "POP_WAIT_BACKOFF_THRESHOLD", key: "messages.watch_pause_after", unit: "" },
    Seed { variable: "POP_WAIT_BACKOFF_MULTIPLIER", key: "messages.watch_pause_factor", unit: "" },
    Seed { variable: "POP_WAIT_MAX_INTERVAL_MS", key: "messages.watch_pause_max", unit: "ms" },
];

/// What sets nothing, and why.
const MEANINGLESS: &[(&str, &str)] = &[
    ("POLL_WORKER_COUNT", "one dispatcher looks for everybody who waits, and only when it is rung"),
    ("USE_PRIORITY_DISPATCH", "acks and renewals have a connection of their own, so nothing need jump a queue"),
];

/// The names of a setting beside ours.
pub(super) fn variables(key: &str) -> impl Iterator<Item = &'static str> {
    SEEDS.iter().filter(move |seed| seed.key == key).map(|seed| seed.variable)
}

/// A bare number has the unit that the name had for Queen.
pub(super) fn with_unit(variable: &str, text: String) -> String {
    let seed = SEEDS.iter().find(|seed| seed.variable == variable);
    let bare = text.trim().bytes().all(|byte| byte.is_ascii_digit());
    match seed {
        Some(seed) if seed.unit == "s" => units::seconds(&text).unwrap_or(text),
        Some(seed) if bare => format!("{}{}", text.trim(), seed.unit),
        _ => text,
    }
}

/// Those that are set and mean nothing here, with the reason.
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
    fn what_means_nothing_is_told_only_when_it_is_set() {
        let told: Vec<&str> = meaningless(|name| name == "POLL_WORKER_COUNT").map(|(name, _)| name).collect();

        assert_eq!(told, ["POLL_WORKER_COUNT"]);
    }
}
