//! The switches of an operator, by the names they have outside of the program.
//!
//! The library reads no environment: the program passes it in.

use std::time::Duration;

use super::JobsOptions;
use crate::jobs::error::JobsError;

const NOTIFY: &str = "REVEILLE_NOTIFY";
const FALLBACK_INTERVAL: &str = "REVEILLE_FALLBACK_INTERVAL_S";
const STARTUP_SCAN: &str = "REVEILLE_STARTUP_SCAN";

impl JobsOptions {
    /// The defaults, with the switches that an environment sets:
    /// `JobsOptions::from_environment(|name| std::env::var(name).ok())`.
    ///
    /// | variable | sets |
    /// |---|---|
    /// | `REVEILLE_NOTIFY` | [`notify`](Self::notify): `on` or `off` |
    /// | `REVEILLE_FALLBACK_INTERVAL_S` | [`fallback_interval`](Self::fallback_interval), in seconds, such as `2` or `0.5` |
    /// | `REVEILLE_STARTUP_SCAN` | nothing: a worker claims when it starts. `off` is refused |
    ///
    /// Every fault is reported at once. An empty value is none.
    pub fn from_environment(environment: impl Fn(&str) -> Option<String>) -> Result<Self, JobsError> {
        let (mut options, mut faults) = (Self::default(), Vec::new());
        let value = |name: &str| environment(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        if let Some(text) = value(NOTIFY) {
            match switch(&text) {
                Some(notify) => options.notify = notify,
                None => faults.push(format!("{NOTIFY} is {text:?}: write on or off")),
            }
        }
        if let Some(text) = value(FALLBACK_INTERVAL) {
            match interval(&text) {
                Some(interval) => options = options.fallback_interval(interval),
                None => faults.push(format!("{FALLBACK_INTERVAL} is {text:?}: write seconds, such as 2 or 0.5")),
            }
        }
        if let Some(text) = value(STARTUP_SCAN) {
            match switch(&text) {
                Some(true) => {}
                Some(false) => faults.push(format!(
                    "{STARTUP_SCAN} cannot be off: only the first claim finds jobs committed before the worker listens"
                )),
                None => faults.push(format!("{STARTUP_SCAN} is {text:?}: it is always on")),
            }
        }
        if faults.is_empty() { Ok(options) } else { Err(JobsError::Refused(faults.join("; "))) }
    }
}

fn switch(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "on" | "true" | "yes" | "1" => Some(true),
        "off" | "false" | "no" | "0" => Some(false),
        _ => None,
    }
}

fn interval(text: &str) -> Option<Duration> {
    let interval = Duration::try_from_secs_f64(text.parse().ok()?).ok()?;
    (!interval.is_zero()).then_some(interval)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(set: &[(&str, &str)]) -> Result<JobsOptions, JobsError> {
        let find = |name: &str| set.iter().find(|(there, _)| *there == name).map(|(_, text)| (*text).to_owned());
        JobsOptions::from_environment(find)
    }

    #[test]
    fn the_environment_sets_switches_and_leaves_the_other_defaults() {
        let usual = read(&[("REVEILLE_NOTIFY", " "), ("OTHER", "off")]).unwrap();
        assert_eq!((usual.notify, usual.fallback_interval), (true, None));

        let quiet =
            [("REVEILLE_NOTIFY", "OFF"), ("REVEILLE_FALLBACK_INTERVAL_S", "0.5"), ("REVEILLE_STARTUP_SCAN", "on")];
        let quiet = read(&quiet).unwrap();
        assert_eq!((quiet.notify, quiet.fallback_interval), (false, Some(Duration::from_millis(500))));
        assert_eq!(quiet.everywhere(), Duration::from_millis(500));
    }

    #[test]
    fn every_fault_is_reported_at_once() {
        let wrong =
            [("REVEILLE_NOTIFY", "maybe"), ("REVEILLE_FALLBACK_INTERVAL_S", "-1"), ("REVEILLE_STARTUP_SCAN", "off")];
        let text = read(&wrong).unwrap_err().to_string();

        for part in [
            "REVEILLE_NOTIFY is \"maybe\"",
            "REVEILLE_FALLBACK_INTERVAL_S is \"-1\"",
            "REVEILLE_STARTUP_SCAN cannot be off",
        ] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        for zero in ["0", "NaN", "inf", "1e400", "2 s"] {
            assert!(read(&[("REVEILLE_FALLBACK_INTERVAL_S", zero)]).is_err(), "{zero}");
        }
    }
}
