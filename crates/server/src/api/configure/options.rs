//! The options of a queue, as clients spell them.

use std::time::Duration;

use reveille::messages::QueueOptions;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::flags::Flags;
use super::time;
use crate::problem::Problem;

/// The lease time Queen gives a queue that is configured without one. A queue that a push creates
/// has the library's default.
const CONFIGURED_LEASE: Duration = Duration::from_secs(300);

/// Every option that does something here.
pub(super) const NAMES: [&str; 21] = [
    "leaseTime",
    "maxSize",
    "ttl",
    "retryLimit",
    "retryDelay",
    "priority",
    "delayedProcessing",
    "windowBuffer",
    "encryptionEnabled",
    "maxWaitTimeSeconds",
    "deadLetterQueue",
    "dlqAfterMaxRetries",
    "retentionEnabled",
    "retentionSeconds",
    "completedRetentionSeconds",
    "maxDeliveries",
    "dedupWindowSeconds",
    "requireLease",
    "durableAcks",
    "quiet",
    "paused",
];

/// The fifteen options of Queen, then our own, then those that newer clients of Queen may send and
/// that have no effect here. Times are in seconds, except `retryDelay`, which is in milliseconds.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Options {
    lease_time: Option<f64>,
    max_size: Option<i64>,
    ttl: Option<f64>,
    retry_limit: Option<i64>,
    retry_delay: Option<f64>,
    priority: Option<i64>,
    delayed_processing: Option<f64>,
    window_buffer: Option<f64>,
    encryption_enabled: Option<bool>,
    max_wait_time_seconds: Option<f64>,
    dead_letter_queue: Option<bool>,
    dlq_after_max_retries: Option<bool>,
    retention_enabled: Option<bool>,
    retention_seconds: Option<f64>,
    completed_retention_seconds: Option<f64>,
    max_deliveries: Option<i64>,
    dedup_window_seconds: Option<f64>,
    require_lease: Option<bool>,
    durable_acks: Option<bool>,
    quiet: Option<bool>,
    paused: Option<bool>,
    #[serde(rename = "minPopWaitTime")]
    _min_pop_wait_time: Option<IgnoredAny>,
    #[serde(rename = "retentionSinkHold")]
    _retention_sink_hold: Option<IgnoredAny>,
    #[serde(rename = "retentionSinkHoldMaxSeconds")]
    _retention_sink_hold_max_seconds: Option<IgnoredAny>,
}

impl Options {
    /// The options that mean something only together.
    pub(super) fn flags(&self) -> Flags {
        Flags {
            dead_letter_queue: self.dead_letter_queue,
            dlq_after_max_retries: self.dlq_after_max_retries,
            retention_enabled: self.retention_enabled,
            retention_seconds: self.retention_seconds,
            completed_retention_seconds: self.completed_retention_seconds,
        }
    }

    pub(super) fn read(&self, is_new: bool) -> Result<QueueOptions, Problem> {
        let lease = time("leaseTime", self.lease_time)?.filter(|lease| !lease.is_zero());
        let mut options = QueueOptions::default();
        // To Queen a lease time of zero means the default.
        let unnamed = is_new || self.lease_time.is_some();
        if let Some(lease) = lease.or(unnamed.then_some(CONFIGURED_LEASE)) {
            options = options.lease(lease);
        }
        macro_rules! choose {
            ($($option:ident: $value:expr;)*) => {$(
                if let Some(value) = $value {
                    options = options.$option(value);
                }
            )*};
        }
        choose! {
            max_size: self.max_size;
            ttl: time("ttl", self.ttl)?;
            retry_limit: self.retry_limit;
            retry_delay: time("retryDelay", self.retry_delay.map(|ms| ms / 1000.0))?;
            priority: self.priority;
            delay: time("delayedProcessing", self.delayed_processing)?;
            window_buffer: time("windowBuffer", self.window_buffer)?;
            encrypted: self.encryption_enabled;
            max_wait: time("maxWaitTimeSeconds", self.max_wait_time_seconds)?;
            max_deliveries: self.max_deliveries;
            dedup_window: time("dedupWindowSeconds", self.dedup_window_seconds)?;
            require_lease: self.require_lease;
            durable_acks: self.durable_acks;
            quiet: self.quiet;
            paused: self.paused;
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_has_its_name_in_the_list() {
        for name in NAMES {
            assert!(serde_json::from_str::<Options>(&format!(r#"{{"{name}":null}}"#)).is_ok(), "{name}");
        }
        let unknown = serde_json::from_str::<Options>(r#"{"x":1}"#).unwrap_err().to_string();
        assert_eq!(unknown.matches('`').count() / 2, 1 + NAMES.len() + 3, "{unknown}");
    }
}
