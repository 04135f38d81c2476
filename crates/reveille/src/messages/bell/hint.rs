//! What a hint about messages says: where to look, and for whoever is in the same process why.
//!
//! ```text
//! 12#pushed          every group of queue 12        12/7#settled       any partition, for group 7
//! 12:345#pushed      only partition 345             12/7:345#released  partition 345, for group 7
//! new#configured     queues that were not there     *#configured       everything
//! ```

use std::fmt;

use reveille_wake::Cause;

use crate::messages::ids::{GroupId, PartitionId, QueueId};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hint {
    pub(super) about: About,
    pub(super) cause: Cause,
}

/// Where something may have become ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum About {
    Everything,
    /// Queues and partitions that were not there.
    Names,
    Queue(QueueId),
    Partition(QueueId, PartitionId),
    Group(QueueId, GroupId, Option<PartitionId>),
}

impl Hint {
    /// `None` for what is none: hints are untrusted. A queue alone is one too: SQL pushes say no more.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (about, cause) = text.split_once('#').unwrap_or((text, "pushed"));
        let cause = Cause::ALL.into_iter().find(|known| known.name() == cause)?;
        let about = match about {
            "*" => About::Everything,
            "new" => About::Names,
            _ => place(about)?,
        };
        Some(Self { about, cause })
    }
}

fn place(text: &str) -> Option<About> {
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

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.about {
            About::Everything => f.write_str("*")?,
            About::Names => f.write_str("new")?,
            About::Queue(queue) => write!(f, "{}", queue.0)?,
            About::Partition(queue, partition) => write!(f, "{}:{}", queue.0, partition.0)?,
            About::Group(queue, group, None) => write!(f, "{}/{}", queue.0, group.0)?,
            About::Group(queue, group, Some(partition)) => write!(f, "{}/{}:{}", queue.0, group.0, partition.0)?,
        }
        write!(f, "#{}", self.cause.name())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_said_is_understood() {
        let (queue, group, partition) = (QueueId(12), GroupId(7), PartitionId(345));
        let places = [
            (About::Everything, "*"),
            (About::Names, "new"),
            (About::Queue(queue), "12"),
            (About::Partition(queue, partition), "12:345"),
            (About::Group(queue, group, None), "12/7"),
            (About::Group(queue, group, Some(partition)), "12/7:345"),
        ];
        for (about, text) in places {
            for cause in Cause::ALL {
                let hint = Hint { about, cause };
                assert_eq!(hint.to_string(), format!("{text}#{cause}"));
                assert_eq!(Hint::parse(&hint.to_string()), Some(hint));
            }
        }
        assert_eq!(Hint::parse("12"), Some(Hint { about: About::Queue(queue), cause: Cause::Pushed }));
    }

    proptest! {
        #[test]
        fn a_forged_hint_is_ignored_or_understood_but_never_fatal(text in "[0-9/:#*a-z]{0,30}") {
            let _ = Hint::parse(&text);
        }
    }
}
