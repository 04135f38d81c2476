//! A queue, with the options that pushes, pops and acks need.

use std::time::Duration;

use tokio_postgres::Row;
use uuid::Uuid;

use crate::messages::ids::QueueId;
use crate::messages::name::QueueName;

/// A queue, as read from its row.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(in crate::messages) struct QueueEntry {
    pub(in crate::messages) id: QueueId,
    pub(in crate::messages) uid: Uuid,
    pub(in crate::messages) name: QueueName,
    pub(in crate::messages) namespace: String,
    pub(in crate::messages) task: String,
    pub(in crate::messages) priority: i32,
    /// How many messages may wait; zero for any number.
    pub(in crate::messages) max_size: i64,
    pub(in crate::messages) lease: Duration,
    pub(in crate::messages) delay: Duration,
    pub(in crate::messages) window_buffer: Duration,
    /// Transaction ids are remembered: a partition stores each once within the window.
    pub(in crate::messages) remembers: bool,
    pub(in crate::messages) encrypted: bool,
    pub(in crate::messages) require_lease: bool,
    pub(in crate::messages) durable_acks: bool,
    pub(in crate::messages) paused: bool,
}

impl QueueEntry {
    pub(super) fn read(row: &Row) -> Option<Self> {
        let seconds = |column| Duration::try_from_secs_f64(row.get(column)).unwrap_or_default();
        Some(Self {
            id: QueueId(row.get("id")),
            uid: row.get("uid"),
            name: QueueName::new(row.get::<_, String>("name")).ok()?,
            namespace: row.get("namespace"),
            task: row.get("task"),
            priority: row.get("priority"),
            max_size: row.get("max_size"),
            lease: seconds("lease_s"),
            delay: seconds("delay_s"),
            window_buffer: seconds("window_s"),
            remembers: row.get("remembers"),
            encrypted: row.get("encrypted"),
            require_lease: row.get("require_lease"),
            durable_acks: row.get("durable_acks"),
            paused: row.get("paused"),
        })
    }
}
