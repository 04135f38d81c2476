//! The options of all queues of a process.

use std::fmt;
use std::sync::Arc;

use reveille_wake::{BackoffOptions, Observer, PollModeOptions};

use super::seal::KeyRing;

/// Options of [`Messages`](super::Messages).
#[derive(Debug, Clone)]
pub struct MessagesOptions {
    pub(crate) payload_bytes_max: usize,
    pub(crate) waiters_max: usize,
    pub(crate) pop_bytes_max: i64,
    pub(crate) groups_max: i32,
    pub(crate) observer: Option<Observing>,
    pub(crate) key_ring: KeyRing,
    pub(crate) upkeep_interval: std::time::Duration,
    pub(crate) poll_mode: PollModeOptions,
    pub(crate) backoff: BackoffOptions,
}

/// An observer of the wake engine, which is not shown.
#[derive(Clone)]
pub(crate) struct Observing(pub(crate) Arc<dyn Observer>);

impl fmt::Debug for Observing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observing")
    }
}

impl Default for MessagesOptions {
    fn default() -> Self {
        Self {
            payload_bytes_max: 16 * 1024 * 1024,
            waiters_max: 20_000,
            pop_bytes_max: 8 * 1024 * 1024,
            groups_max: 1000,
            observer: None,
            key_ring: KeyRing::default(),
            upkeep_interval: std::time::Duration::from_secs(300),
            poll_mode: PollModeOptions::DEFAULT,
            backoff: BackoffOptions::default(),
        }
    }
}

impl MessagesOptions {
    /// The largest payload a message may carry, in bytes. Default: 16 MiB; zero allows only empty
    /// ones.
    #[must_use]
    pub fn payload_bytes_max(mut self, bytes: usize) -> Self {
        self.payload_bytes_max = bytes;
        self
    }

    /// A key for encrypted queues, under a number that is stored with what it seals. The highest
    /// number writes; the others still open what they sealed. Default: none, and encrypted queues
    /// refuse pushes.
    #[must_use]
    pub fn encryption_key(mut self, id: i32, key: [u8; 32]) -> Self {
        self.key_ring.insert(id, key);
        self
    }

    /// How often upkeep runs: it retires old messages, frees their space, forgets transaction ids
    /// and checks that no message is stranded. One of all processes does it; for the others it is
    /// one statement. Default: 5 minutes; zero leaves it to other processes.
    #[must_use]
    pub fn upkeep_interval(mut self, interval: std::time::Duration) -> Self {
        self.upkeep_interval = interval;
        self
    }

    /// How many pops may wait at once in this process. Default: 20,000; zero counts as one.
    #[must_use]
    pub fn waiters_max(mut self, waiters: usize) -> Self {
        self.waiters_max = waiters.max(1);
        self
    }

    /// How many consumer groups a queue may have: the first pop of one more is refused. Each group
    /// has a row for each partition of the queue, and stays until it is deleted. The consumers of a
    /// plain queue are never refused. Default: 1,000; zero lets no new group begin.
    #[must_use]
    pub fn groups_max(mut self, groups: u32) -> Self {
        self.groups_max = i32::try_from(groups).unwrap_or(i32::MAX);
        self
    }

    /// Fallback polling: when and how often claim rounds are made without a wake-up, because hints
    /// cannot be trusted at the moment. Default: [`PollModeOptions::DEFAULT`].
    #[must_use]
    pub fn poll_mode(mut self, poll_mode: PollModeOptions) -> Self {
        self.poll_mode = poll_mode;
        self
    }

    /// For how long fallback polling skips a key that it found empty. Default:
    /// [`BackoffOptions::default`].
    #[must_use]
    pub fn backoff(mut self, backoff: BackoffOptions) -> Self {
        self.backoff = backoff;
        self
    }

    /// Receives the events of the wake engine: wake-ups, claim rounds, the link. Default: none.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = Some(Observing(observer));
        self
    }

    /// How many bytes one pop may return. Its partitions share them, with at least 64 KiB for each.
    /// Each partition may return one segment (messages that were pushed together) beyond its share:
    /// nothing else limits the memory of a pop of many partitions with large messages. Default: 8
    /// MiB; zero returns one segment of each partition at a time.
    #[must_use]
    pub fn pop_bytes_max(mut self, bytes: i64) -> Self {
        self.pop_bytes_max = bytes.max(0);
        self
    }
}
