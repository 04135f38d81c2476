//! The options of a queue.

use std::time::Duration;

use crate::messages::error::MessagesError;
use crate::messages::name::QueueName;
use tokio_postgres::types::ToSql;

/// The longest time an option may have: ten years.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

type Owned = Box<dyn ToSql + Sync + Send>;

macro_rules! queue_options {
    ($($(#[$doc:meta])* $name:ident: $type:ty;)*) => {
        /// Options to change; the others stay as they are.
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct QueueOptions {
            replace: bool,
            namespace: Option<String>,
            task: Option<String>,
            echo: Option<String>,
            $($name: Option<$type>,)*
        }

        impl QueueOptions {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $name(mut self, value: $type) -> Self {
                    self.$name = Some(value);
                    self
                }
            )*
        }
    };
}

queue_options! {
    /// How long a claim lasts. Default: 60 seconds. At least a millisecond.
    lease: Duration;
    /// How many failures a message may have before it becomes a dead letter. Default: 3; zero for
    /// none.
    retry_limit: i64;
    /// The pause after a failure. Default: none.
    retry_delay: Duration;
    /// How often a message may be claimed without an answer before it becomes a dead letter.
    /// Default: 25. At least 1.
    max_deliveries: i64;
    /// Messages are hidden until they are this old. Default: zero, they are not.
    delay: Duration;
    /// Partitions are hidden until their newest message is this old. Default: zero, they are not.
    window_buffer: Duration;
    /// Messages older than this are not delivered any more. Default: zero, they are.
    ttl: Duration;
    /// How many messages may wait for the slowest group before pushes are refused. Pushes at the
    /// same time may each add one flush more, and pushes in a caller's transaction are not refused.
    /// Default: zero, any number.
    max_size: i64;
    /// Which queue of a namespace or task is served first: higher before lower. Default: 0.
    priority: i64;
    /// How long messages are kept. Default: zero, for ever.
    retention: Duration;
    /// How long messages are kept that all groups have consumed. Default: zero, for ever.
    completed_retention: Duration;
    /// How long messages are kept that some group has not consumed. Default: zero, for ever.
    max_wait: Duration;
    /// How long a transaction id is remembered. Default: an hour; zero for not at all.
    dedup_window: Duration;
    /// Whether messages that failed too often are kept as dead letters. Default: yes.
    dead_letters: bool;
    /// Whether payloads are stored encrypted. Payloads pushed before stay as they are. Default: no.
    encrypted: bool;
    /// Whether an ack must name its lease. Default: no.
    require_lease: bool;
    /// Whether acks wait for the disk. Default: yes.
    durable_acks: bool;
    /// Whether pushes in a caller's transaction send no notification; the heartbeat then finds
    /// them, within 12 s. Default: no.
    quiet: bool;
    /// Whether pops return nothing for now. Default: no.
    paused: bool;
}

impl QueueOptions {
    /// Reset the options that are not given to those of a new queue.
    #[must_use]
    pub fn replace(mut self) -> Self {
        self.replace = true;
        self
    }

    /// Which namespace the queue is in. Default: the part of its name before the first dot, if
    /// there is one.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Which task the queue serves. Default: the part of its name after the first dot, if there is
    /// one.
    #[must_use]
    pub fn task(mut self, task: impl Into<String>) -> Self {
        self.task = Some(task.into());
        self
    }

    /// A JSON object that is kept with the queue and returned; keys that are given again are
    /// replaced. Default: empty.
    #[must_use]
    pub fn echo(mut self, object: impl Into<String>) -> Self {
        self.echo = Some(object.into());
        self
    }

    /// Whether messages that wait for a delay may be ready now.
    pub(super) fn may_hasten(&self) -> bool {
        self.replace || self.delay.is_some() || self.window_buffer.is_some()
    }

    /// Refuses the first value that is not allowed.
    pub(super) fn check(&self) -> Result<(), MessagesError> {
        let shortest = Duration::from_millis(1);
        if let Some(lease) = self.lease.filter(|lease| *lease < shortest) {
            return Err(out_of_range("the lease time", "at least 1 ms", format!("{lease:?}")));
        }
        let times = [
            ("the lease time", self.lease),
            ("the retry delay", self.retry_delay),
            ("the delay", self.delay),
            ("the window buffer", self.window_buffer),
            ("the time to live", self.ttl),
            ("the retention", self.retention),
            ("the retention of what was consumed", self.completed_retention),
            ("the longest wait", self.max_wait),
            ("the deduplication window", self.dedup_window),
        ];
        for (what, time) in times {
            if let Some(time) = time.filter(|time| *time > LONGEST) {
                return Err(out_of_range(what, "at most ten years", format!("{} seconds", time.as_secs())));
            }
        }
        let most = i64::from(i32::MAX);
        within("the retry limit", self.retry_limit, 0..=most, "0 to 2147483647")?;
        within("the number of deliveries", self.max_deliveries, 1..=most, "1 to 2147483647")?;
        within("the size of the queue", self.max_size, 0..=i64::MAX, "0 or more")?;
        within("the priority", self.priority, i64::from(i32::MIN)..=most, "-2147483648 to 2147483647")?;
        for (what, word) in [("the namespace", &self.namespace), ("the task", &self.task)] {
            let Some(word) = word else { continue };
            if word.contains('\0') {
                return Err(MessagesError::Nul { what });
            }
            if word.len() > 512 {
                return Err(out_of_range(what, "at most 512 bytes long", format!("{} bytes long", word.len())));
            }
        }
        Ok(())
    }

    /// In the order of the statement's parameters.
    pub(super) fn params(&self, name: &QueueName) -> [Owned; 24] {
        let seconds = |time: Option<Duration>| -> Owned { Box::new(time.map(|time| time.as_secs_f64())) };
        let int =
            |number: Option<i64>| -> Owned { Box::new(number.map(|number| i32::try_from(number).unwrap_or(i32::MAX))) };
        [
            Box::new(name.as_str().to_owned()),
            Box::new(self.replace),
            Box::new(self.namespace.clone()),
            Box::new(self.task.clone()),
            seconds(self.lease),
            int(self.retry_limit),
            seconds(self.retry_delay),
            int(self.max_deliveries),
            seconds(self.delay),
            seconds(self.window_buffer),
            seconds(self.ttl),
            Box::new(self.max_size),
            int(self.priority),
            seconds(self.retention),
            seconds(self.completed_retention),
            seconds(self.max_wait),
            seconds(self.dedup_window),
            Box::new(self.dead_letters),
            Box::new(self.encrypted),
            Box::new(self.require_lease),
            Box::new(self.durable_acks),
            Box::new(self.quiet),
            Box::new(self.paused),
            Box::new(self.echo.clone()),
        ]
    }
}

fn within(
    what: &'static str,
    number: Option<i64>,
    range: std::ops::RangeInclusive<i64>,
    allowed: &'static str,
) -> Result<(), MessagesError> {
    match number {
        Some(number) if !range.contains(&number) => Err(out_of_range(what, allowed, number.to_string())),
        _ => Ok(()),
    }
}

fn out_of_range(what: &'static str, allowed: &'static str, given: String) -> MessagesError {
    MessagesError::OutOfRange { what, allowed, given }
}
