//! Options of Queen that mean something only together. The queue keeps them as clients spelt them.

use std::time::Duration;

use reveille::messages::{QueueDescription, QueueOptions};
use serde::{Deserialize, Serialize};

use super::time;
use crate::problem::Problem;

#[derive(Debug, Default, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Flags {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) dead_letter_queue: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) dlq_after_max_retries: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) retention_enabled: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) retention_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) completed_retention_seconds: Option<f64>,
}

impl Flags {
    /// The flags that were given for this queue so far.
    pub(super) fn of(queue: &QueueDescription) -> Self {
        serde_json::from_str(&queue.echo).unwrap_or_default()
    }

    /// These flags; those that are absent are taken from before.
    pub(super) fn over(self, before: Option<Self>) -> Self {
        let before = before.unwrap_or_default();
        Self {
            dead_letter_queue: self.dead_letter_queue.or(before.dead_letter_queue),
            dlq_after_max_retries: self.dlq_after_max_retries.or(before.dlq_after_max_retries),
            retention_enabled: self.retention_enabled.or(before.retention_enabled),
            retention_seconds: self.retention_seconds.or(before.retention_seconds),
            completed_retention_seconds: self.completed_retention_seconds.or(before.completed_retention_seconds),
        }
    }

    /// Impossible times are refused, as for every other option.
    pub(super) fn check(&self) -> Result<(), Problem> {
        time("retentionSeconds", self.retention_seconds)?;
        time("completedRetentionSeconds", self.completed_retention_seconds)?;
        Ok(())
    }

    /// A message that failed too often is dropped only if both flags are false. Messages are
    /// retired only if retention is enabled: with Queen, a number of seconds alone keeps
    /// everything.
    pub(super) fn choose(&self, options: QueueOptions) -> QueueOptions {
        let mut options = options;
        if self.dead_letter_queue.is_some() || self.dlq_after_max_retries.is_some() {
            let neither = self.dead_letter_queue == Some(false) && self.dlq_after_max_retries == Some(false);
            options = options.dead_letters(!neither);
        }
        if self.retention_enabled.is_some()
            || self.retention_seconds.is_some()
            || self.completed_retention_seconds.is_some()
        {
            let enabled = self.retention_enabled == Some(true);
            let kept = |seconds: Option<f64>| {
                let seconds = seconds.filter(|_| enabled).unwrap_or_default();
                Duration::try_from_secs_f64(seconds).unwrap_or_default()
            };
            options = options.retention(kept(self.retention_seconds));
            options = options.completed_retention(kept(self.completed_retention_seconds));
        }
        options
    }

    pub(super) fn spelt(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|_| "{}".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(json: &str) -> Flags {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn dead_letters_are_dropped_only_if_both_flags_say_so() {
        let chosen = |json: &str| flags(json).choose(QueueOptions::default());

        assert_eq!(chosen(r#"{"deadLetterQueue":false}"#), QueueOptions::default().dead_letters(true));
        let both = r#"{"deadLetterQueue":false,"dlqAfterMaxRetries":false}"#;
        assert_eq!(chosen(both), QueueOptions::default().dead_letters(false));
        assert_eq!(chosen(r#"{"deadLetterQueue":null}"#), QueueOptions::default());
    }

    #[test]
    fn retention_needs_its_switch_and_remembers_its_time() {
        let off = flags(r#"{"retentionSeconds":60}"#);
        let on = flags(r#"{"retentionEnabled":true}"#).over(Some(off));
        let none = Duration::ZERO;

        let plain = QueueOptions::default();
        assert_eq!(off.choose(plain.clone()), plain.clone().retention(none).completed_retention(none));
        assert_eq!(on.choose(plain.clone()), plain.retention(Duration::from_secs(60)).completed_retention(none));
    }
}
