//! What a pop waits for.
//!
//! A key is one question, whole: an empty look by one waiter answers every other waiter under the same key, so everything
//! that decides what may be taken is part of it. Batch sizes do not decide that; queue, group and partition do.
//!
//! Next: [`super::bell`], which rings them.

use std::fmt;
use std::sync::Arc;

use super::ids::{GroupId, PartitionId, QueueId};
use super::name::{PartitionName, QueueName};

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// Something for a group to claim, in one partition of a queue or in any.
    Claim { queue: QueueId, group: GroupId, partition: Option<PartitionId> },
    /// A queue that is not there yet.
    Queue(QueueName),
    /// A partition that is not there yet.
    Partition(QueueId, PartitionName),
    /// Other queues of a namespace or task than were known.
    Space(Arc<Space>),
}

/// The queues of a namespace or a task, as somebody last saw them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Space {
    pub(super) namespace: Option<Arc<str>>,
    pub(super) task: Option<Arc<str>>,
    /// Ascending.
    pub(super) known: Vec<QueueId>,
}

/// As the survey reads it: see sql/messages/pop/survey.sql.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Claim { queue, group, partition: None } => write!(f, "{}/{}", queue.0, group.0),
            Self::Claim { queue, group, partition: Some(partition) } => {
                write!(f, "{}/{}/{}", queue.0, group.0, partition.0)
            }
            Self::Queue(name) => write!(f, "q/{name}"),
            Self::Partition(queue, name) => write!(f, "p/{}/{name}", queue.0),
            Self::Space(space) => {
                let (namespace, task) = (space.namespace.as_deref(), space.task.as_deref());
                let newest = space.known.last().map_or(0, |queue| queue.0);
                let length = namespace.map_or(-1, |namespace| i64::try_from(namespace.chars().count()).unwrap_or(-1));
                let mark = if task.is_some() { "t" } else { "" };
                write!(f, "s/{newest}/{length}/{}{mark}{}", namespace.unwrap_or(""), task.unwrap_or(""))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_key_is_spelled_apart() {
        let (queue, group) = (QueueId(7), GroupId(8));
        let space = |namespace: Option<&str>, task: Option<&str>| {
            Key::Space(Arc::new(Space {
                namespace: namespace.map(Into::into),
                task: task.map(Into::into),
                known: vec![QueueId(1), QueueId(3)],
            }))
        };
        let spelled = [
            Key::Claim { queue, group, partition: None },
            Key::Claim { queue, group, partition: Some(PartitionId(9)) },
            Key::Queue("a/b".parse().unwrap()),
            Key::Partition(queue, "a/b".parse().unwrap()),
            space(Some("shop"), None),
            space(None, Some("mail")),
            space(Some("shop"), Some("mail")),
            space(Some("shopt"), Some("mail")),
        ]
        .map(|key| key.to_string());

        let expected =
            ["7/8", "7/8/9", "q/a/b", "p/7/a/b", "s/3/4/shop", "s/3/-1/tmail", "s/3/4/shoptmail", "s/3/5/shopttmail"];
        assert_eq!(spelled, expected);
    }
}
