//! Which activities a worker slot may take.
//!
//! Tags and session owner decide. Slots that differ in either have different keys, and perhaps only
//! one of them may take a row.

use std::collections::BTreeSet;
use std::time::Duration;

use duroxide::providers::{SessionFetchConfig, TagFilter};
use reveille::service::Column;
use tokio_postgres::types::Type;

use crate::queue::{QueueKey, QueueRequest};

/// What may be taken.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ActivityKey {
    /// Who takes sessions; `None` leaves activities of sessions alone.
    pub(crate) owner: Option<String>,
    /// Activities of every tag, and untagged ones.
    pub(crate) any: bool,
    /// Activities without a tag.
    pub(crate) untagged: bool,
    tags: BTreeSet<String>,
}

impl ActivityKey {
    /// `None` when the filter lets nothing pass.
    pub(crate) fn of(session: Option<&SessionFetchConfig>, filter: &TagFilter) -> Option<Self> {
        let sorted = |tags: &std::collections::HashSet<String>| tags.iter().cloned().collect();
        let (any, untagged, tags) = match filter {
            TagFilter::None => return None,
            TagFilter::Any => (true, true, BTreeSet::new()),
            TagFilter::DefaultOnly => (false, true, BTreeSet::new()),
            TagFilter::Tags(tags) => (false, false, sorted(tags)),
            TagFilter::DefaultAnd(tags) => (false, true, sorted(tags)),
        };
        Some(Self { owner: session.map(|session| session.owner_id.clone()), any, untagged, tags })
    }

    /// Whether both may take the same activities, apart from those of sessions.
    pub(crate) fn has_tags_of(&self, other: &Self) -> bool {
        (self.any, self.untagged, &self.tags) == (other.any, other.untagged, &other.tags)
    }

    pub(crate) fn names(&self) -> Vec<&str> {
        self.tags.iter().map(String::as_str).collect()
    }
}

impl QueueKey for ActivityKey {
    fn columns(keys: &[Self]) -> Vec<Column> {
        let tags = |key: &Self| serde_json::json!(key.tags).to_string();
        vec![
            Column::new("owners", Type::TEXT_ARRAY, keys.iter().map(|key| key.owner.clone()).collect()),
            Column::new("any", Type::BOOL_ARRAY, keys.iter().map(|key| key.any).collect()),
            Column::new("untagged", Type::BOOL_ARRAY, keys.iter().map(|key| key.untagged).collect()),
            Column::new("tags", Type::TEXT_ARRAY, keys.iter().map(tags).collect()),
        ]
    }
}

/// For how long an activity and its session are taken.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ActivityRequest {
    pub(crate) lock: Duration,
    pub(crate) session: Duration,
}

impl QueueRequest for ActivityRequest {
    fn lock(&self) -> Duration {
        self.lock
    }
}
