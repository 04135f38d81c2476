//! The rows of a claim, as jobs: `sql/jobs/claim/take.sql` says what they have.

use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::Row;

use super::Claimed;
use crate::jobs::event::About;
use crate::jobs::id::{JobId, JobToken};
use crate::jobs::ready::Queue;
use crate::jobs::worker::Claiming;

pub(super) fn about(row: &Row, queue: &Queue) -> About {
    About {
        id: JobId(row.get("id")),
        kind: Arc::from(row.get::<_, Option<&str>>("kind").unwrap_or_default()),
        queue: Arc::clone(queue),
        attempt: row.get("attempt"),
        item_id: row.get::<_, Option<&[u8]>>("metadata").and_then(item_id),
    }
}

pub(super) fn claimed(row: &Row, queue: &Queue, nonce: i64, claiming: &Claiming) -> Claimed {
    let id = JobId(row.get("id"));
    let timeout: Option<i64> = row.get("timeout_ms");
    Claimed {
        token: JobToken { id, epoch: row.get("epoch"), nonce },
        about: about(row, queue),
        queue: Arc::clone(queue),
        priority: row.get("priority"),
        max_attempts: row.get("max_attempts"),
        args: row.get::<_, Option<Vec<u8>>>("args").unwrap_or_default(),
        timeout: timeout.map(|timeout| Duration::from_millis(timeout.unsigned_abs())),
        tags: row.get::<_, Option<Vec<String>>>("tags").unwrap_or_default(),
        metadata: row.get("metadata"),
        waited: Duration::from_secs_f64(row.get::<_, f64>("waited_s").clamp(0.0, 1e9)),
        was_due: (row.get("was_due_at"), id.0),
        claiming: claiming.clone(),
    }
}

fn item_id(metadata: &[u8]) -> Option<Arc<str>> {
    let value: serde_json::Value = serde_json::from_slice(metadata).ok()?;
    match value.get("item_id")? {
        serde_json::Value::String(text) => Some(Arc::from(&**text)),
        serde_json::Value::Null => None,
        other => Some(Arc::from(other.to_string())),
    }
}
