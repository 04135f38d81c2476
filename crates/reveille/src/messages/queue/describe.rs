//! A queue as it is shown to operators, and filters for lists of queues.

use std::time::{Duration, SystemTime};

use tokio_postgres::Row;
use uuid::Uuid;

use crate::messages::ids::QueueId;
use crate::messages::name::QueueName;

/// A queue and its options; [`QueueOptions`](super::QueueOptions) explains each.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the options are explained where they are set")]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct QueueDescription {
    pub name: QueueName,
    pub uid: Uuid,
    pub namespace: String,
    pub task: String,
    pub created_at: SystemTime,
    pub lease: Duration,
    pub retry_limit: i32,
    pub retry_delay: Duration,
    pub max_deliveries: i32,
    pub delay: Duration,
    pub window_buffer: Duration,
    pub ttl: Duration,
    pub max_size: i64,
    pub priority: i32,
    pub retention: Duration,
    pub completed_retention: Duration,
    pub max_wait: Duration,
    pub dedup_window: Duration,
    pub dead_letters: bool,
    pub encrypted: bool,
    pub require_lease: bool,
    pub durable_acks: bool,
    pub quiet: bool,
    pub paused: bool,
    pub echo: String,
    /// How many partitions it has; counted up to 10,000. `None` in the answer of `configure`.
    pub partitions: Option<i64>,
    /// How many messages these partitions keep, consumed or not.
    pub messages: Option<i64>,
    pub(crate) id: QueueId,
}

impl QueueDescription {
    pub(super) fn read(row: &Row) -> Option<Self> {
        let time = |column| Duration::try_from_secs_f64(row.get(column)).unwrap_or_default();
        Some(Self {
            name: QueueName::new(row.get::<_, String>("name")).ok()?,
            uid: row.get("uid"),
            namespace: row.get("namespace"),
            task: row.get("task"),
            created_at: SystemTime::UNIX_EPOCH + time("created_s"),
            lease: time("lease"),
            retry_limit: row.get("retry_limit"),
            retry_delay: time("retry_delay"),
            max_deliveries: row.get("max_deliveries"),
            delay: time("delay"),
            window_buffer: time("window_buffer"),
            ttl: time("ttl"),
            max_size: row.get("max_size"),
            priority: row.get("priority"),
            retention: time("retention"),
            completed_retention: time("completed_retention"),
            max_wait: time("max_wait"),
            dedup_window: time("dedup_window"),
            dead_letters: row.get("dead_letters"),
            encrypted: row.get("encrypted"),
            require_lease: row.get("require_lease"),
            durable_acks: row.get("durable_acks"),
            quiet: row.get("quiet"),
            paused: row.get("paused"),
            echo: row.get("echo"),
            partitions: row.try_get("partitions").ok(),
            messages: row.try_get("messages").ok(),
            id: QueueId(row.get("id")),
        })
    }
}

/// Which queues to list.
#[derive(Debug, Clone, Default)]
pub struct QueueList {
    pub(super) namespace: Option<String>,
    pub(super) task: Option<String>,
    pub(super) text: Option<String>,
    pub(super) after: Option<QueueName>,
    pub(super) limit: i64,
}

impl QueueList {
    /// The first 100, by name.
    pub fn new() -> Self {
        Self { limit: 100, ..Self::default() }
    }

    /// Only those of this namespace. Default: any.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Only those of this task. Default: any.
    #[must_use]
    pub fn task(mut self, task: impl Into<String>) -> Self {
        self.task = Some(task.into());
        self
    }

    /// Only those with this text in their name. Default: any.
    #[must_use]
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.text = Some(text.into());
        self
    }

    /// Only those after this one: the last of the page before. Default: from the beginning.
    #[must_use]
    pub fn after(mut self, name: QueueName) -> Self {
        self.after = Some(name);
        self
    }

    /// How many at most. Default: 100; 1 to 1000.
    #[must_use]
    pub fn limit(mut self, limit: i64) -> Self {
        self.limit = limit;
        self
    }
}

/// A namespace or a task.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Space {
    /// Its name.
    pub name: String,
    /// How many queues it has.
    pub queues: i64,
}

impl Space {
    pub(super) fn read(row: &Row) -> Self {
        Self { name: row.get("name"), queues: row.get("queues") }
    }
}
