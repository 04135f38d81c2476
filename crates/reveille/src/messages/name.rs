//! Names of queues, partitions and groups: checked once, trusted afterwards.

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, LazyLock};

use super::error::NameError;

/// Names are indexed: three of them and a number must fit into one index entry.
pub(super) const NAME_BYTES_MAX: usize = 512;

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident = $what:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks a name: 1 to 512 bytes, any character but NUL.
            pub fn new(name: impl Into<Arc<str>>) -> Result<Self, NameError> {
                let name = name.into();
                match check(&name) {
                    Some(fault) => Err(fault($what)),
                    None => Ok(Self(name)),
                }
            }

            /// As it was written.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = NameError;

            fn from_str(name: &str) -> Result<Self, NameError> {
                Self::new(name)
            }
        }
    )*};
}

names! {
    /// The name of a queue.
    QueueName = "queue";
    /// The name of a partition: an ordered part of a queue.
    PartitionName = "partition";
    /// The name of a consumer group: consumers that share their work.
    GroupName = "consumer group";
}

impl PartitionName {
    /// The partition of pushes that name none.
    pub fn usual() -> Self {
        static USUAL: LazyLock<Arc<str>> = LazyLock::new(|| Arc::from("Default"));
        Self(Arc::clone(&USUAL))
    }
}

impl GroupName {
    /// The group of pops that name none: consumers of a plain queue.
    pub fn queue_mode() -> Self {
        static QUEUE_MODE: LazyLock<Arc<str>> = LazyLock::new(|| Arc::from("__QUEUE_MODE__"));
        Self(Arc::clone(&QUEUE_MODE))
    }

    /// Whether this is the group of a plain queue.
    pub fn is_queue_mode(&self) -> bool {
        &*self.0 == "__QUEUE_MODE__"
    }
}

fn check(name: &str) -> Option<fn(&'static str) -> NameError> {
    match name {
        "" => Some(|what| NameError::Empty { what }),
        _ if name.len() > NAME_BYTES_MAX => Some(|what| NameError::TooLong { what }),
        _ if name.contains('\0') => Some(|what| NameError::Nul { what }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_are_names() {
        for name in ["a/b", "\"; drop table x --", "'", "🦆", " ", "*", "a\nb", &"x".repeat(512)] {
            assert_eq!(QueueName::new(name).unwrap().as_str(), name);
        }
    }

    #[test]
    fn what_is_no_name_is_refused_in_words() {
        let refused = |name: &str| QueueName::new(name).unwrap_err().to_string();

        assert_eq!(refused(""), "the queue's name is empty");
        assert_eq!(refused(&"x".repeat(513)), "the queue's name is longer than 512 bytes");
        assert_eq!(refused("a\0b"), "the queue's name contains a NUL character");
    }
}
