//! What an announcement about messages is about, and how other nodes read it.
//!
//! ```text
//! 12          every group of queue 12          12/7        any partition, for group 7
//! 12:345      only partition 345               12/7:345    partition 345, for group 7
//! new         queues or partitions created     12/7#lease  the end of a lease of group 7
//! *           everything
//! ```

use crate::messages::ids::{GroupId, PartitionId, QueueId};
use crate::node::Hint;

/// Where something may have become ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::messages) enum About {
    Everything,
    /// Queues or partitions that did not exist before.
    Names,
    Queue(QueueId),
    Partition(QueueId, PartitionId),
    Group(QueueId, GroupId, Option<PartitionId>),
    /// A lease of the group ends, in some partition.
    LeaseEnd(QueueId, GroupId),
}

impl Hint for About {
    fn to_text(&self) -> String {
        match self {
            Self::Everything => "*".to_owned(),
            Self::Names => "new".to_owned(),
            Self::Queue(queue) => queue.0.to_string(),
            Self::Partition(queue, partition) => format!("{}:{}", queue.0, partition.0),
            Self::Group(queue, group, None) => format!("{}/{}", queue.0, group.0),
            Self::Group(queue, group, Some(partition)) => format!("{}/{}:{}", queue.0, group.0, partition.0),
            Self::LeaseEnd(queue, group) => format!("{}/{}{LEASE_END}", queue.0, group.0),
        }
    }

    /// A push in SQL sends the queue alone.
    fn from_text(text: &str) -> Option<Self> {
        match text {
            "*" => Some(Self::Everything),
            "new" => Some(Self::Names),
            _ => match text.strip_suffix(LEASE_END) {
                Some(group) => lease_end(group),
                None => queue_or_group(text),
            },
        }
    }
}

const LEASE_END: &str = "#lease";

fn lease_end(text: &str) -> Option<About> {
    let About::Group(queue, group, None) = queue_or_group(text)? else { return None };
    Some(About::LeaseEnd(queue, group))
}

fn queue_or_group(text: &str) -> Option<About> {
    let (owner, partition) = match text.split_once(':') {
        Some((owner, partition)) => (owner, Some(PartitionId(partition.parse().ok()?))),
        None => (text, None),
    };
    let Some((queue, group)) = owner.split_once('/') else {
        let queue = QueueId(owner.parse().ok()?);
        return Some(partition.map_or(About::Queue(queue), |partition| About::Partition(queue, partition)));
    };
    Some(About::Group(QueueId(queue.parse().ok()?), GroupId(group.parse().ok()?), partition))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_one_node_writes_another_reads() {
        let (queue, group, partition) = (QueueId(12), GroupId(7), PartitionId(345));
        let hints = [
            (About::Everything, "*"),
            (About::Names, "new"),
            (About::Queue(queue), "12"),
            (About::Partition(queue, partition), "12:345"),
            (About::Group(queue, group, None), "12/7"),
            (About::Group(queue, group, Some(partition)), "12/7:345"),
            (About::LeaseEnd(queue, group), "12/7#lease"),
        ];

        for (about, text) in hints {
            assert_eq!(about.to_text(), text);
            assert_eq!(About::from_text(text), Some(about));
        }
    }

    proptest! {
        #[test]
        fn a_forged_hint_is_ignored_or_understood_but_never_fatal(text in "[0-9/:#*a-z]{0,30}") {
            let _ = About::from_text(&text);
        }
    }
}
