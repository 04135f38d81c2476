//! Ids of rows: numbers inside, UUIDs outside.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

macro_rules! row_ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) struct $name(pub(crate) i32);
    )*};
}

row_ids! {
    /// A queue's row.
    QueueId;
    /// A partition's row.
    PartitionId;
    /// A consumer group of one queue.
    GroupId;
}

macro_rules! public_ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map(Self)
            }
        }
    )*};
}

public_ids! {
    /// A message: a UUID of version 7, made when it was pushed.
    MessageId;
    /// A partition: its public id.
    PartitionUid;
    /// A lease: random, made at the claim, and stored with everything it covers.
    LeaseId;
}

impl MessageId {
    /// A new one.
    pub fn new() -> Self {
        Self(Uuid::now_v7())
    }
}

impl Default for MessageId {
    fn default() -> Self {
        Self::new()
    }
}

impl LeaseId {
    pub(super) fn random() -> Self {
        Self(Uuid::new_v4())
    }
}
