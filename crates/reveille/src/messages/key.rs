//! What a pop waits for.
//!
//! A key has everything that decides what may be claimed: queue, group and partition, but not the
//! size of a batch. So if a claim round finds a key empty, it is empty for every pop that waits
//! under it.
//!
//! Next: [`super::ready`], which wakes keys.

use std::sync::Arc;

use tokio_postgres::types::Type;

use super::ids::{GroupId, PartitionId, QueueId};
use super::name::{PartitionName, QueueName};
use crate::node::Column;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Key {
    /// Messages for a group, in one partition of a queue or in any.
    Claim { queue: QueueId, group: GroupId, partition: Option<PartitionId> },
    /// A queue that does not exist yet.
    Queue(QueueName),
    /// A partition that does not exist yet.
    Partition(QueueId, PartitionName),
    /// Queues of a namespace or task, other than those a pop has seen.
    Space(Arc<Space>),
}

/// A namespace, a task, or a task within a namespace, with the queues it had when a pop last read
/// them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Space {
    pub(super) namespace: Option<Arc<str>>,
    pub(super) task: Option<Arc<str>>,
    /// Ascending.
    pub(super) seen_queues: Vec<QueueId>,
}

/// The columns of sql/messages/pop/survey.sql.
pub(super) fn columns(keys: &[Key]) -> Vec<Column> {
    let ids = |of: fn(&Key) -> Option<i32>| keys.iter().map(of).collect::<Vec<_>>();
    let texts = |of: fn(&Key) -> Option<&str>| keys.iter().map(|key| of(key).map(str::to_owned)).collect::<Vec<_>>();
    vec![
        Column::new("queues", Type::INT4_ARRAY, ids(Key::queue)),
        Column::new("groups", Type::INT4_ARRAY, ids(Key::group)),
        Column::new("partitions", Type::INT4_ARRAY, ids(Key::partition)),
        Column::new("queue_names", Type::TEXT_ARRAY, texts(Key::queue_name)),
        Column::new("partition_names", Type::TEXT_ARRAY, texts(Key::partition_name)),
        Column::new("newest", Type::INT4_ARRAY, ids(Key::newest)),
        Column::new("namespaces", Type::TEXT_ARRAY, texts(|key| key.space()?.namespace.as_deref())),
        Column::new("tasks", Type::TEXT_ARRAY, texts(|key| key.space()?.task.as_deref())),
    ]
}

impl Key {
    fn queue(&self) -> Option<i32> {
        match self {
            Self::Claim { queue, .. } | Self::Partition(queue, _) => Some(queue.0),
            Self::Queue(_) | Self::Space(_) => None,
        }
    }

    fn group(&self) -> Option<i32> {
        match self {
            Self::Claim { group, .. } => Some(group.0),
            Self::Queue(_) | Self::Partition(..) | Self::Space(_) => None,
        }
    }

    fn partition(&self) -> Option<i32> {
        match self {
            Self::Claim { partition, .. } => partition.map(|partition| partition.0),
            Self::Queue(_) | Self::Partition(..) | Self::Space(_) => None,
        }
    }

    fn queue_name(&self) -> Option<&str> {
        match self {
            Self::Queue(name) => Some(name.as_str()),
            Self::Claim { .. } | Self::Partition(..) | Self::Space(_) => None,
        }
    }

    fn partition_name(&self) -> Option<&str> {
        match self {
            Self::Partition(_, name) => Some(name.as_str()),
            Self::Claim { .. } | Self::Queue(_) | Self::Space(_) => None,
        }
    }

    fn space(&self) -> Option<&Space> {
        match self {
            Self::Space(space) => Some(space),
            Self::Claim { .. } | Self::Queue(_) | Self::Partition(..) => None,
        }
    }

    /// The newest queue that a pop has seen in a space; 0 if there is none.
    fn newest(&self) -> Option<i32> {
        self.space().map(|space| space.seen_queues.last().map_or(0, |queue| queue.0))
    }
}
